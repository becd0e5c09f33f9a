// A user must sign in again for a token only after a fault that may have lost one.
import { saysOver, saysTokenGone } from '../answers.mjs';
import { faultsWithin } from '../excuses.mjs';
import { REFUSED } from '../sessions.mjs';
import { mayLoseTokens } from './one-grant.mjs';

const BEFORE_MS = 12_000; // a lost token shows at its expiry, or with the first request after it

export default {
  name: 'needs-sign-in',
  what: 'no session loses its tokens without a fault that may have lost them',
  find(run) {
    return [...run.sessions.values()].flatMap(({ name, who, answers, endings }) => {
      const isRefused = (by) => endings.some(({ why, begin }) => why === REFUSED && begin <= by);
      const first = answers.find((event) => saysTokenGone(event) || (saysOver(event) && isRefused(event.end)));
      if (!first || endings.some(({ begin, why }) => why !== REFUSED && begin <= first.end) || faultsWithin(run, first.begin - BEFORE_MS, first.end).some(mayLoseTokens)) return [];
      return [{ at: first.end, text: `session ${name} of ${who} has lost its token: ${first.error ?? first.state}`, event: first }];
    });
  },
};
