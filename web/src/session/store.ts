/**
 * The one place that knows whether somebody is signed in.
 *
 * Invariants:
 * - only an answer of the server signs anybody in or out; a failing check keeps the user and sets `error`;
 * - at most one check runs at a time, and an answer that left before a sign-out is thrown away;
 * - after a transient failure it asks again by itself, with backoff, until somebody stops listening.
 *
 * It knows no router, no page and no React.
 */
import { retryDelayMs } from "./backoff";
import { readProfile, type SessionError, type User } from "./profile";
import { joinTabs, type TabMessage, type Tabs } from "./tabs";

/** How a session that was there went away: it ended on the server, or the person signed out in this browser. */
export type Loss = "ended" | "signed-out";

export interface SessionState {
  /** Who is signed in; null when nobody is or when it is not known yet. */
  readonly user: User | null;
  /** Why the last check failed; null after a check that got its answer. */
  readonly error: SessionError | null;
  /** True until the first check is over. */
  readonly isLoading: boolean;
  /** Set when there was a user in this page and now there is none. */
  readonly lost: Loss | null;
}

/** The state before the first answer. */
export const UNKNOWN: SessionState = { user: null, error: null, isLoading: true, lost: null };

export interface SessionStoreOptions {
  /** Default `/api/auth/me`. */
  profileUrl?: string;
  fetch?: typeof globalThis.fetch;
  random?: () => number;
  now?: () => number;
}

export interface SessionStore {
  getState(): SessionState;
  /** Listens to changes; the first listener starts the first check, the last one to leave stops everything. */
  subscribe(listener: () => void): () => void;
  /** Asks the server who is signed in. Never rejects: a failure is in the state. */
  check(): Promise<void>;
  /** Has the edge read the profile anew at the provider. Rejects with `SessionError`; the user stays as it was. */
  refetch(): Promise<User | null>;
  /** Tells the other tabs that the person is signing out; this one is leaving for the sign-out route. */
  signingOut(): void;
}

// Coming back to a tab asks again, but not on every switch between two windows.
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
    // Whatever is still on its way was asked by somebody who has left since.
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
    // A page out of the back-forward cache shows what was true when it was left.
    if (event.persisted) void check();
  };

  function hear(message: TabMessage): void {
    if (message === "signed-out") forget();
    // A session that ended may have been replaced by a new one in another tab; whoever is signed in has nothing to learn.
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
    getState: () => state,
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
      // The page stays as it is until the browser has left it; no late answer may change it meanwhile.
      generation += 1;
      running = null;
      clearTimeout(retryTimer);
    },
  };
}
