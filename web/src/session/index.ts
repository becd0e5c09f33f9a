/**
 * Sessions for React apps, also built as a separate package for other apps (see `web/session`). It depends on React
 * and on the routes of the edge, and on nothing else in this app.
 */
export { retryDelayMs } from "./backoff";
export { SessionError, type User } from "./profile";
export { RequireSession, type RequireSessionProps } from "./RequireSession";
export { type Session, SessionProvider, useSession, useSessionStore } from "./SessionProvider";
export { here, LOGIN_PATH, LOGOUT_PATH, loginUrl } from "./sign-in";
export { STATUS_PATH } from "./status";
export {
  createSessionStore,
  type Loss,
  type SessionState,
  type SessionStore,
  type SessionStoreOptions,
} from "./store";
export { type Expiry, type ExpiryOptions, useExpiry } from "./useExpiry";
export { useSignOut } from "./useSignOut";
