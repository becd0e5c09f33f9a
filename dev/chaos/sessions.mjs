// A history as what is judged: each session with its creation, what may have ended it, and every answer about it.
//
// An ending counts from its beginning as something that may have happened, and from its answer as something that has. One that was not
// answered may happen at any time after it began.
import { refreshesOf } from './grants.mjs';

/** Why a session ended that the provider refused to refresh. */
export const REFUSED = 'refused by the provider';

const OK = 0;
const RECEIVED_MS = 1_000; // after the provider has written that it answers, the edge has the answer

/** Everything that is known of the sessions of a history: name → session. */
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

/** Whether an ending of everything comes between the provider's tokens and the answer to the callback: it ends the session all the same. */
const isBeingCreated = ({ tokensAt, created }, { begin }) => tokensAt + RECEIVED_MS < begin && begin < created.end;

/** What a request may have ended: sessions, each with an ending that has an `end` once it was acknowledged. */
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
    // A callback that is refused leaves the session the browser has; one that is not heard of may have replaced it. No replica acknowledges
    // that one took another's place.
    case 'sign-in': return own && event.returned && event.status !== 400 ? [{ session: own, ending: of(event.status === 302 && !isReplicated, event.returned) }] : [];
    default: return [];
  }
}
