/** Leaving for the sign-in and the sign-out routes of the edge. */

export const LOGIN_PATH = "/api/auth/login";
export const LOGOUT_PATH = "/api/auth/logout";

/** The login route, with the way back. The edge checks `returnTo` and drops what is not ours. */
export function loginUrl(returnTo?: string): string {
  return returnTo ? `${LOGIN_PATH}?returnTo=${encodeURIComponent(returnTo)}` : LOGIN_PATH;
}

/** Path, query and fragment of the page one is on: what sign-in should come back to. */
export function here(location: Location = window.location): string {
  return location.pathname + location.search + location.hash;
}

const SENT_AT = "session.sign-in-sent-at";
// A sign-in that came back without a session within this time would only go round in circles.
const ONCE_WITHIN_MS = 60_000;

/**
 * Whether this tab may be sent to sign in by itself. It may once; if it comes back without a session (cookies
 * blocked, say), the person decides. Storage that is blocked counts as "not sent yet", once per page load.
 */
export function maySendToSignIn(nowMs: number): boolean {
  try {
    const sentAt = Number(sessionStorage.getItem(SENT_AT));
    if (sentAt > 0 && nowMs - sentAt < ONCE_WITHIN_MS && nowMs >= sentAt) return false;
    sessionStorage.setItem(SENT_AT, String(nowMs));
  } catch {
    // Without storage the module's own memory of this page load has to do.
  }
  return true;
}

/** Forgets that this tab was sent to sign in: it worked. */
export function signInWorked(): void {
  try {
    sessionStorage.removeItem(SENT_AT);
  } catch {
    // Nothing was stored either.
  }
}
