// After the last fault, every browser is served at every edge within the bound.
import { isOverloaded } from '../excuses.mjs';
import { RECOVERY_MS } from './unavailable.mjs';

const STEP_MS = 100;

/** The time to recover, without the time in which the machine was stalled. */
function tookMs({ begin, end }, stalls) {
  let took = 0;
  for (let at = begin; at < end; at += STEP_MS) if (!isOverloaded(stalls, at)) took += Math.min(STEP_MS, end - at);
  return took;
}

export default {
  name: 'recovery',
  what: `every edge serves every user within ${RECOVERY_MS} ms of the last fault`,
  find({ events, stalls }) {
    const recoveries = events.filter(({ type }) => type === 'recovery');
    if (recoveries.length === 0) return [{ at: 0, text: 'the run did not record whether it recovered' }];
    return recoveries.filter((event) => tookMs(event, stalls) > RECOVERY_MS || !(event.ok || isOverloaded(stalls, event.end)))
      .map((event) => ({ at: event.end, text: `some users are not served after ${Math.round(event.end - event.begin)} ms`, event }));
  },
};
