/**
 * Listens to what happens to this person's sessions, and comes back when the stream breaks.
 *
 * Watching never extends a session. A stream is reopened with the last resume token, so nothing is told twice or
 * lost; where the server lost something it says MISSED.
 */
import { SessionEvent_Kind as Kind, type SessionEvent } from "../gen/session/v1/session_pb";
import { retryDelayMs } from "../session";
import { watchMySession } from "./browser-session";

// The server beats every 15 s: after three missed beats the stream is dead, whatever the connection says.
const SILENCE_MS = 45_000;
// The text format keeps all it ever received: a fresh stream now and then keeps that small.
const OLDEST_MS = 10 * 60_000;
// A stream that lived this long was healthy; the next failure is a new one.
const HEALTHY_MS = 5_000;
const UNIMPLEMENTED = 12;

export interface Watcher {
  event: (event: SessionEvent) => void;
  /** The stream says that the session is gone. */
  missing: () => void;
}

/** Starts watching; the returned function stops for good. */
export function watchSessions({ event, missing }: Watcher): () => void {
  let resumeToken = "";
  let attempt = 0;
  let stopped = false;
  let close = () => {};
  let reopenTimer: ReturnType<typeof setTimeout> | undefined;
  let silenceTimer: ReturnType<typeof setTimeout> | undefined;
  let ageTimer: ReturnType<typeof setTimeout> | undefined;

  const hush = () => {
    clearTimeout(silenceTimer);
    clearTimeout(ageTimer);
  };
  const reopen = (delayMs: number) => {
    hush();
    close();
    if (!stopped) reopenTimer = setTimeout(connect, delayMs);
  };
  const listen = () => {
    clearTimeout(silenceTimer);
    silenceTimer = setTimeout(() => reopen(0), SILENCE_MS);
  };

  function connect(): void {
    const openedAt = Date.now();
    listen();
    ageTimer = setTimeout(() => reopen(0), OLDEST_MS);
    close = watchMySession(resumeToken, {
      message(message) {
        listen();
        if (message.resumeToken) resumeToken = message.resumeToken;
        if (message.kind !== Kind.HEARTBEAT) event(message);
      },
      end(failure) {
        if (stopped) return;
        hush();
        if (failure?.missingSession) return missing();
        // An edge that does not offer the stream is asked for the session every so often instead.
        if (failure?.code === UNIMPLEMENTED) return;
        if (Date.now() - openedAt > HEALTHY_MS) attempt = 0;
        reopen(retryDelayMs(attempt++, null, Math.random));
      },
    });
  }

  connect();
  return () => {
    stopped = true;
    clearTimeout(reopenTimer);
    hush();
    close();
  };
}
