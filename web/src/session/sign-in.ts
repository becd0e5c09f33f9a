/** Navigates to the sign-in and sign-out routes of the edge. */
import type { SessionStore } from "./store";

export const LOGIN_PATH = "/api/auth/login";
export const LOGOUT_PATH = "/api/auth/logout";

/** The login route with the return address. The edge checks `returnTo` and drops foreign addresses. */
export function loginUrl(returnTo?: string): string {
  return returnTo ? `${LOGIN_PATH}?returnTo=${encodeURIComponent(returnTo)}` : LOGIN_PATH;
}

/** Path, query and fragment of the current page: the place to return to after sign-in. */
export function here(location: Location = window.location): string {
  return location.pathname + location.search + location.hash;
}

const leave = (url: string) => window.location.assign(url);

/** Leaves for the sign-in, which returns to this page or to `returnTo`. */
export function signIn(returnTo: string = here(), navigate: (url: string) => void = leave): void {
  navigate(loginUrl(returnTo));
}

/** Signs out in this and every other tab at once, then at the edge, which ends its own and the provider's session. */
export function signOut(store: SessionStore, navigate: (url: string) => void = leave): void {
  store.signingOut();
  navigate(LOGOUT_PATH);
}

const SENT_AT = "session.sign-in-sent-at";
// If a sign-in returns without a session within this time, another automatic attempt would loop.
const ONCE_WITHIN_MS = 60_000;

/**
 * Whether this tab may go to the sign-in automatically. It may do so once. If it returns without a session (for
 * example, cookies are blocked), the person decides. Blocked storage counts as "not sent yet", once per page load.
 */
export function maySendToSignIn(nowMs: number): boolean {
  try {
    const sentAt = Number(sessionStorage.getItem(SENT_AT));
    if (sentAt > 0 && nowMs - sentAt < ONCE_WITHIN_MS && nowMs >= sentAt) return false;
    sessionStorage.setItem(SENT_AT, String(nowMs));
  } catch {
    // Without storage, a module variable remembers it for this page load.
  }
  return true;
}

/** Forgets that this tab went to the sign-in, because the sign-in succeeded. */
export function signInWorked(): void {
  try {
    sessionStorage.removeItem(SENT_AT);
  } catch {
    // Without storage there is no entry to remove.
  }
}
