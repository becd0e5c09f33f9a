"use client";

import { useCallback, useEffect, useState } from "react";
import { useSession, useSessionStore } from "./SessionProvider";
import { readTimeLeft, STATUS_PATH } from "./status";

export interface ExpiryOptions {
  /** How long before its end the session is announced to end, in seconds. Default 120. */
  warnSeconds?: number;
  /** Default `/api/auth/status`. */
  statusUrl?: string;
  fetch?: typeof globalThis.fetch;
}

export interface Expiry {
  /** Seconds left, from the warning on, counting down; null before it and when nobody is signed in. */
  secondsLeft: number | null;
  /** Whether no use puts this end off: offer `loginUrl(here())` instead of `stay`. */
  isLast: boolean;
  /** Extends the session: what "stay signed in" does. Never rejects. */
  stay: () => Promise<void>;
}

// Another tab may have extended the session, or ended it: while the warning stands, it is asked again this often.
const ASK_AGAIN_MS = 15_000;
// The longest a timer is trusted: a computer that slept wakes up with timers that know nothing of it.
const LONGEST_WAIT_MS = 5 * 60_000;

/**
 * Tells when the session is about to end. It counts what the server says is left against the browser's monotonic
 * clock, so a browser whose date is wrong counts right.
 */
export function useExpiry({ warnSeconds = 120, statusUrl = STATUS_PATH, fetch }: ExpiryOptions = {}): Expiry {
  const { user } = useSession();
  const store = useSessionStore();
  const [secondsLeft, setSecondsLeft] = useState<number | null>(null);
  const [isLast, setIsLast] = useState(false);
  const [asked, setAsked] = useState(0);
  const signedIn = user !== null;

  // biome-ignore lint/correctness/useExhaustiveDependencies: `asked` asks again
  useEffect(() => {
    if (!signedIn) return;
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      clearTimeout(timer);
      const request: typeof globalThis.fetch = fetch ?? ((...args) => globalThis.fetch(...args));
      const left = await readTimeLeft(statusUrl, request, gone.signal);
      if (gone.signal.aborted) return;
      if (left === null) {
        timer = setTimeout(ask, ASK_AGAIN_MS);
        return;
      }
      const askedAt = performance.now();
      const endsAt = askedAt + left.seconds * 1_000;
      setIsLast(left.isLast);
      const tick = () => {
        const remaining = endsAt - performance.now();
        const warning = remaining <= warnSeconds * 1_000;
        setSecondsLeft(warning ? Math.max(0, Math.ceil(remaining / 1_000)) : null);
        if (remaining <= 0) void store.check();
        else if (warning && performance.now() - askedAt >= ASK_AGAIN_MS) void ask();
        else if (warning) timer = setTimeout(tick, 1_000);
        else timer = setTimeout(ask, Math.min(LONGEST_WAIT_MS, remaining - warnSeconds * 1_000));
      };
      tick();
    };
    const onVisible = () => {
      if (document.visibilityState === "visible") void ask();
    };
    document.addEventListener("visibilitychange", onVisible);
    void ask();
    return () => {
      gone.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
      setSecondsLeft(null);
    };
  }, [signedIn, warnSeconds, statusUrl, fetch, store, asked]);

  const stay = useCallback(async () => {
    // Reading the profile counts as use.
    await store.check();
    setAsked((times) => times + 1);
  }, [store]);
  return { secondsLeft: signedIn ? secondsLeft : null, isLast, stay };
}
