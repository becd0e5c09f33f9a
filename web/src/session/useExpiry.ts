"use client";

import { useCallback, useEffect, useState } from "react";
import { useSession, useSessionStore } from "./SessionProvider";
import { readTimeLeft, STATUS_PATH } from "./status";

export interface ExpiryOptions {
  /** How many seconds before the end of the session the warning appears. Default 120. */
  warnSeconds?: number;
  /** Default `/api/auth/status`. */
  statusUrl?: string;
  fetch?: typeof globalThis.fetch;
}

export interface Expiry {
  /** Seconds left, counting down; null before the warning starts and without a signed-in person. */
  secondsLeft: number | null;
  /** Whether no use can extend this end: offer `loginUrl(here())` instead of `stay`. */
  isLast: boolean;
  /** Extends the session, as "stay signed in" does. Never rejects. */
  stay: () => Promise<void>;
}

// Another tab may have extended or ended the session, so the warning checks it at this interval.
const ASK_AGAIN_MS = 15_000;
// The longest timer in use: timers do not count the time that a computer sleeps.
const LONGEST_WAIT_MS = 5 * 60_000;

/**
 * Reports when the session is about to end. It measures the server's remaining time with the browser's monotonic
 * clock, so it is correct even if the browser's date is wrong.
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
    // Reading the profile counts as use of the session.
    await store.check();
    setAsked((times) => times + 1);
  }, [store]);
  return { secondsLeft: signedIn ? secondsLeft : null, isLast, stay };
}
