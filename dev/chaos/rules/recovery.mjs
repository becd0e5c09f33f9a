// When the last fault is over, every browser is served at every edge within the bound.
import { stalledMs } from '../excuses.mjs';
import { RECOVERY_MS } from './unavailable.mjs';

export default {
  name: 'recovery',
  what: `everybody is served at every edge within ${RECOVERY_MS} ms of the last fault`,
  find({ events, stalls }) {
    const recoveries = events.filter(({ type }) => type === 'recovery');
    if (recoveries.length === 0) return [{ at: 0, text: 'nobody looked whether all is well again' }];
    return recoveries.filter(({ ok, begin, end }) => !ok || end - begin > RECOVERY_MS + stalledMs(stalls, begin, end))
      .map((event) => ({ at: event.end, text: `not everybody is served after ${Math.round(event.end - event.begin)} ms`, event }));
  },
};
