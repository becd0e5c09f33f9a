// A refreshed token stays: once a request has seen a token, later requests never see an earlier one.
import { refreshesOf } from '../grants.mjs';

const CACHED_MS = 1_000; // how long an edge may not know of a change

export default {
  name: 'stale-token',
  what: 'no acknowledged refresh is undone',
  find({ events, sessions }) {
    const order = new Map([...refreshesOf(events).values()].flatMap((lines) => lines.filter(({ access }) => access).map(({ access }, at) => [access, at])));
    return [...sessions.values()].flatMap(({ name, answers }) => {
      const seen = answers.filter(({ token }) => order.has(token));
      const stale = seen.find((event) => seen.some((before) => before.end + CACHED_MS < event.begin && order.get(before.token) > order.get(event.token)));
      return stale ? [{ at: stale.end, text: `session ${name} has an older token again`, event: stale }] : [];
    });
  },
};
