/**
 * A sign-out returns to the only address that is registered with the provider, the start page. A mark in the tab's
 * storage survives the redirects, so that the tab then shows the signed-out page.
 */
import { paths } from "../paths";
import { useSignOut } from "../session";

const KEY = "signing-out";
/** The fragment that the edge appends to the start page if the person is still signed in at the provider. */
const HERE_ONLY = "#signed-out-here-only";

/** Signs out, then shows the signed-out page. */
export function useLeave(): () => void {
  return useSignOut(leave);
}

function leave(url: string) {
  inStorage((storage) => storage.setItem(KEY, "1"));
  window.location.assign(url);
}

/** Runs before the first page renders: if this tab has just signed out, shows the signed-out page instead. */
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

/** Storage may be blocked; then the person stays on the start page. */
function inStorage<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(window.sessionStorage);
  } catch {
    return undefined;
  }
}
