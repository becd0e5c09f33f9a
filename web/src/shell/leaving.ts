/**
 * Signing out ends at the one address that is registered with the provider, the start page. What this tab wanted is remembered over
 * the way there, so that it goes on to the page that says so.
 */
import { paths } from "../paths";
import { useSignOut } from "../session";

const KEY = "signing-out";
/** How the edge ends the address of the start page where the person is still signed in at the provider. */
const HERE_ONLY = "#signed-out-here-only";

/** Signs out, and lands on the page that says so. */
export function useLeave(): () => void {
  return useSignOut(leave);
}

function leave(url: string) {
  inStorage((storage) => storage.setItem(KEY, "1"));
  window.location.assign(url);
}

/** Before the first page is shown: from the start page on to where signing out ends, if this tab has just signed out. */
export function landAfterSignOut() {
  const leaving = inStorage((storage) => {
    const leaving = storage.getItem(KEY) !== null;
    storage.removeItem(KEY);
    return leaving;
  });
  if (leaving && window.location.pathname === paths.home)
    window.history.replaceState(null, "", paths.signedOut + (isHereOnly() ? HERE_ONLY : ""));
}

/** Whether the person is still signed in at the provider. */
export function isHereOnly(): boolean {
  return window.location.hash === HERE_ONLY;
}

/** Storage may be forbidden: then people land on the start page. */
function inStorage<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(window.sessionStorage);
  } catch {
    return undefined;
  }
}
