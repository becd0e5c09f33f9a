// A history in the form that rules judge: each session with its creation, its possible endings, and every response.
//
// An ending may take effect from its start, and has taken effect at its response. Without a response, it may take
// effect at any time after its start.
import { refreshesOf } from './grants.mjs';

/** Why a session ended that the provider refused to refresh. */
export const REFUSED = 'refused by the provider';

const OK = 0;
const RECEIVED_MS = 1_000; // after the provider logs its response, the edge has received it

/** All facts about the sessions of a history: name → session. */
export function sessionsOf(events) {
  const isReplicated = events.find(({ type }) => type === 'run')?.topology === 'sentinel';
  const sessions = new Map();
  const requests = events.filter(({ type }) => type === 'request');
  const provider = events.filter(({ type }) => type === 'provider');
  const redeemed = new Map(provider.filter(({ kind, code }) => kind === 'granted' && code).map((line) => [line.code, line]));
  for (const event of requests.filter(createsSession)) {
    const { grant, sid, at } = redeemed.get(event.code) ?? {};
    sessions.set(event.set, { name: event.set, who: event.who, grant, sid, tokensAt: at, created: event, endings: [], answers: [] });
  }
  for (const event of requests) {
    sessions.get(event.session)?.answers.push(event);
    for (const { session, ending } of endingsBy(event, sessions, isReplicated)) session.endings.push(ending);
  }
  for (const line of provider) {
    for (const session of sessions.values()) {
      if (line.sid === session.sid && line.kind === 'told') session.endings.push({ begin: session.created.begin, end: line.at, why: 'told by the provider' });
    }
  }
  const disabled = events.filter(({ type }) => type === 'disabled');
  const refreshes = refreshesOf(events);
  for (const session of sessions.values()) {
    for (const { who, at } of disabled) {
      if (who === session.who) session.endings.push({ begin: at, why: 'disabled' });
    }
    const refused = (refreshes.get(session.grant) ?? []).filter(({ kind, grantType }) => kind === 'refused' && grantType === 'refresh_token');
    for (const { at } of refused) session.endings.push({ begin: at, why: REFUSED });
  }
  return sessions;
}

const createsSession = ({ kind, status, set }) => kind === 'sign-in' && status === 302 && set && set !== 'cleared';

/** Whether an ending of all sessions falls between the provider's tokens and the callback: it ends the new one. */
const isBeingCreated = ({ tokensAt, created }, { begin }) => tokensAt + RECEIVED_MS < begin && begin < created.end;

/** The sessions that a request may have ended, each with an ending that has an `end` once it was acknowledged. */
function endingsBy(event, sessions, isReplicated) {
  const own = sessions.get(event.session);
  const of = (isAcknowledged, begin = event.begin) => ({ begin, why: event.kind, ...(isAcknowledged && { end: event.end }) });
  const others = () => [...sessions.values()].filter((session) => session.who === event.who && session !== own && session.created.begin < event.end);
  const all = (list, isAcknowledged, concerns = () => false) => list.map((session) => (
    { session, ending: of(isAcknowledged && (session.created.end < event.begin || concerns(session))) }));
  switch (event.kind) {
    case 'sign-out': return own ? [{ session: own, ending: of(event.status === 302) }] : [];
    case 'operator-ends': return own ? [{ session: own, ending: of(event.grpc === OK) }] : [];
    case 'provider-sign-out': return own ? [{ session: own, ending: of(false) }] : [];
    case 'end-others': return all(others(), event.grpc === OK);
    case 'operator-ends-all': return all(others(), event.grpc === OK, (session) => isBeingCreated(session, event));
    // A rejected callback keeps the browser's session; one without a response may have replaced it. No replica
    // acknowledges that a session replaced another.
    case 'sign-in': return own && event.returned && event.status !== 400 ? [{ session: own, ending: of(event.status === 302 && !isReplicated, event.returned) }] : [];
    default: return [];
  }
}
