/**
 * The session in a React app: what another app copies. It depends on React and on the routes of the edge, and on
 * nothing else of this app.
 */
export { retryDelayMs } from "./backoff";
export { SessionError, type User } from "./profile";
export { RequireSession, type RequireSessionProps } from "./RequireSession";
export { type Session, SessionProvider, useSession, useSessionStore } from "./SessionProvider";
export { here, LOGIN_PATH, LOGOUT_PATH, loginUrl } from "./sign-in";
export { createSessionStore, type Loss, type SessionState, type SessionStore } from "./store";
