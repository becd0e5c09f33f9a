/** The session library without React, for Vue, Svelte, Angular and scripts: the package's entry `/core`. */
export { retryDelayMs } from "./backoff";
export { SessionError, type User } from "./profile";
export { here, LOGIN_PATH, LOGOUT_PATH, loginUrl, signIn, signOut } from "./sign-in";
export { STATUS_PATH } from "./status";
export {
  createSessionStore,
  type Loss,
  type SessionState,
  type SessionStore,
  type SessionStoreOptions,
} from "./store";
