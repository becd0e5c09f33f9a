// During a fault, an unanswerable request receives a clear 503, or the status of an upstream or a provider that is
// down. Nothing else is allowed, the response must be in time, and no such response may follow the recovery.
import { saysOver } from '../answers.mjs';
import { faultsWithin, isOverloaded, stalledMs } from '../excuses.mjs';

export const RECOVERY_MS = 5_000; // connections retry within seconds, and a debug build's lease lasts three
const ANSWER_MS = 10_000; // twice the longest deadline of an edge
const GRPC_AWAY = [4, 14]; // DEADLINE_EXCEEDED, UNAVAILABLE
const WELL = { me: [200, 204], status: [200], app: [200, 401], 'sign-out': [302], 'sign-in': [302], 'end-others': [200], 'provider-sign-out': [200, 303] };
const AWAY = { app: [502, 503, 504], 'sign-in': [400, 502, 503, 504] };

const isWell = ({ kind, status, grpc }) => (kind.startsWith('operator') ? grpc === 0 : WELL[kind].includes(status) && (kind !== 'end-others' || grpc === 0 || saysOver({ kind, grpc })));
const isAway = ({ kind, status, grpc, retryAfter }) => {
  if (kind.startsWith('operator')) return GRPC_AWAY.includes(grpc);
  if (kind === 'end-others') return status === 0 || GRPC_AWAY.includes(grpc) || (status === 503);
  return status === 0 || (status === 503 && (retryAfter || kind !== 'me')) || (AWAY[kind] ?? []).includes(status);
};

/** A sign-in is rejected if its person is signed out everywhere in the meantime. */
const isSignedOutMeanwhile = (events, { kind, status, who, begin, end }) => kind === 'sign-in' && status === 400
  && events.some((other) => ['operator-ends-all', 'end-others'].includes(other.kind) && other.who === who && other.begin <= end && other.end >= begin);

/** A fault excuses nothing at an edge that it does not concern. */
const concerns = ({ edge }) => ({ target, from, to }) => !edge || ![target, from, to].some((name) => ['edge', 'edge-2'].includes(name) && name !== edge);

export default {
  name: 'unavailable',
  what: `a clear 503 during a fault, and normal answers within ${RECOVERY_MS} ms`,
  find(run) {
    return run.events.filter(({ type }) => type === 'request').flatMap((event) => {
      const took = event.end - event.begin;
      const said = event.grpc ?? event.status;
      const wrong = [];
      if (!isWell(event)) {
        if (!isAway(event)) wrong.push(`answers ${said} ${event.error ?? ''}`);
        else if (isSignedOutMeanwhile(run.events, event)) return [];
        else if (!faultsWithin(run, event.begin, event.end, RECOVERY_MS).some(concerns(event)) && !isOverloaded(run.stalls, event.end)) wrong.push(`answers ${said} ${event.error ?? ''} while nothing is broken`);
      }
      const held = faultsWithin(run, event.begin, event.end).filter(concerns(event)).reduce((sum, fault) => sum + Math.min(fault.end, event.end) - Math.max(fault.begin, event.begin), 0);
      if (took > ANSWER_MS + held + stalledMs(run.stalls, event.begin, event.end) && event.kind !== 'sign-in') wrong.push(`takes ${Math.round(took)} ms`);
      return wrong.map((text) => ({ at: event.end, text: `${event.kind} at ${event.edge ?? event.service ?? 'the provider'} ${text}`, event }));
    });
  },
};
