// What a response says about the session that the request named.

const NOT_SIGNED_IN = new Set(['not_authenticated', 'ERR_MISSING_SESSION']);
const NO_SESSION = [5, 16]; // gRPC: NOT_FOUND, UNAUTHENTICATED
const TOKEN_GONE = new Set(['ERR_FAILED_REFRESH_GRANT', 'ERR_MISSING_REFRESH_TOKEN', 'ERR_EXPIRED_ACCESS_TOKEN', 'ERR_MISSING_ACCESS_TOKEN']);

/** Whether the session has ended. */
export const saysOver = ({ kind, status, error, state, grpc }) => (
  (kind === 'me' && status === 204) || (kind === 'end-others' && NO_SESSION.includes(grpc)) || (status === 401 && NOT_SIGNED_IN.has(error)) || state === 'signed_out');

/** Whether the session exists without a usable token. */
export const saysTokenGone = ({ status, error, state }) => (status === 401 && TOKEN_GONE.has(error)) || state === 'needs_sign_in';

/** Whether the session exists. */
export const saysAlive = (event) => (
  (event.status === 200 && ['me', 'app', 'status'].includes(event.kind) && !saysOver(event)) || saysTokenGone(event));
