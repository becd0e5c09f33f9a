/**
 * The only source in the page for the sign-in state.
 *
 * Invariants:
 * - only a server response changes the sign-in state; a failed check keeps the user and sets `error`;
 * - at most one check runs at a time, and a response to a check from before a sign-out is dropped;
 * - after a transient failure it retries with backoff until the last listener leaves.
 *
 * It does not depend on the router, the pages or React.
 */
import { retryDelayMs } from "./backoff";
import { readProfile, type SessionError, type User } from "./profile";
import { joinTabs, type TabMessage, type Tabs } from "./tabs";

/** Why the session is gone: it ended on the server, or the person signed out in this browser. */
export type Loss = "ended" | "signed-out";

export interface SessionState {
  /** The signed-in user; null before the check ends and after a sign-out. */
  readonly user: User | null;
  /** Why the last check failed; null after a check with a valid response. */
  readonly error: SessionError | null;
  /** True until the first check has finished. */
  readonly isLoading: boolean;
  /** Set if this page had a user and has none now. */
  readonly lost: Loss | null;
}

/** The state before the first response. */
export const UNKNOWN: SessionState = { user: null, error: null, isLoading: true, lost: null };

export interface SessionStoreOptions {
  /** Default `/api/auth/me`. */
  profileUrl?: string;
  fetch?: typeof globalThis.fetch;
  random?: () => number;
  now?: () => number;
}

export interface SessionStore {
  /** The current state: a new object after each change, the same one until then. */
  getSnapshot(): SessionState;
  /** Subscribes to changes. The first listener starts the first check; when the last one leaves, everything stops. */
  subscribe(listener: () => void): () => void;
  /** Checks the session at the server. Never rejects: an error appears in the state. */
  check(): Promise<void>;
  /** Makes the edge read the profile from the provider again. Rejects with `SessionError`; the user then stays. */
  refetch(): Promise<User | null>;
  /** Notifies the other tabs that the person is signing out; this tab leaves for the sign-out route. */
  signingOut(): void;
}

// Returning to a tab starts a check, but not on every switch between two windows.
const RECHECK_AFTER_MS = 30_000;

export function createSessionStore(options: SessionStoreOptions = {}): SessionStore {
  const url = options.profileUrl ?? "/api/auth/me";
  const fetch: typeof globalThis.fetch = options.fetch ?? ((...request) => globalThis.fetch(...request));
  const random = options.random ?? Math.random;
  const now = options.now ?? Date.now;

  let state = UNKNOWN;
  const listeners = new Set<() => void>();
  let running: Promise<void> | null = null;
  let generation = 0;
  let attempt = 0;
  let retryTimer: ReturnType<typeof setTimeout> | undefined;
  let checkedAt = Number.NEGATIVE_INFINITY;
  let tabs: Tabs | null = null;

  function set(next: Partial<SessionState>): void {
    state = { ...state, ...next };
    for (const listener of listeners) listener();
  }

  function settle(user: User | null): void {
    attempt = 0;
    checkedAt = now();
    if (user && state.isLoading) tabs?.tell("signed-in");
    const lost = user ? null : state.user ? "ended" : state.lost;
    const same = JSON.stringify(user) === JSON.stringify(state.user);
    if (same && !state.error && !state.isLoading && lost === state.lost) return;
    set({ user: same ? state.user : user, error: null, isLoading: false, lost });
  }

  function fail(error: SessionError): void {
    set({ error, isLoading: false });
    clearTimeout(retryTimer);
    if (!error.transient || listeners.size === 0) return;
    retryTimer = setTimeout(() => void check(), retryDelayMs(attempt, error.retryAfterSeconds, random));
    attempt += 1;
  }

  async function run(): Promise<void> {
    const mine = generation;
    try {
      const user = await readProfile({ url, fetch });
      if (mine === generation) settle(user);
    } catch (error) {
      if (mine === generation) fail(error as SessionError);
    }
  }

  function check(): Promise<void> {
    clearTimeout(retryTimer);
    if (running) return running;
    const mine = run().finally(() => {
      if (running === mine) running = null;
    });
    running = mine;
    return mine;
  }

  async function refetch(): Promise<User | null> {
    const mine = generation;
    const user = await readProfile({ url, fetch, refetch: true });
    if (mine === generation) {
      settle(user);
      tabs?.tell("changed");
    }
    return user;
  }

  function forget(): void {
    // The person has signed out: drop the response of a check that is still running.
    generation += 1;
    running = null;
    clearTimeout(retryTimer);
    set({ user: null, error: null, isLoading: false, lost: "signed-out" });
  }

  const onVisible = () => {
    if (document.visibilityState !== "visible") return;
    if (state.lost === "ended" || now() - checkedAt > RECHECK_AFTER_MS) void check();
  };
  const onOnline = () => void check();
  const onPageShow = (event: PageTransitionEvent) => {
    // A page from the back-forward cache shows an old state.
    if (event.persisted) void check();
  };

  function hear(message: TabMessage): void {
    if (message === "signed-out") forget();
    // Another tab may have a new session in place of the ended one. A page with a signed-in person needs no check.
    else if (message === "changed" || state.lost === "ended") void check();
  }

  function start(): void {
    tabs = joinTabs(hear);
    document.addEventListener("visibilitychange", onVisible);
    window.addEventListener("online", onOnline);
    window.addEventListener("pageshow", onPageShow);
    void check();
  }

  function stop(): void {
    tabs?.close();
    tabs = null;
    clearTimeout(retryTimer);
    document.removeEventListener("visibilitychange", onVisible);
    window.removeEventListener("online", onOnline);
    window.removeEventListener("pageshow", onPageShow);
  }

  return {
    getSnapshot: () => state,
    subscribe(listener) {
      listeners.add(listener);
      if (listeners.size === 1) start();
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) stop();
      };
    },
    check,
    refetch,
    signingOut() {
      tabs?.tell("signed-out");
      // The page stays unchanged until the browser has left it; a late response must not change it.
      generation += 1;
      running = null;
      clearTimeout(retryTimer);
    },
  };
}
