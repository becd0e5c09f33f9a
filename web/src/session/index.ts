/**
 * Sessions for React apps, also built as a separate package for other apps (see `web/session`). It depends on React
 * and on the routes of the edge, and on nothing else in this app.
 */
export * from "./core";
export { RequireSession, type RequireSessionProps } from "./RequireSession";
export { type Session, SessionProvider, useSession, useSessionStore } from "./SessionProvider";
export { type Expiry, type ExpiryOptions, useExpiry } from "./useExpiry";
export { useSignOut } from "./useSignOut";
