/**
 * Receives the events of this person's sessions, and reconnects when the stream breaks.
 *
 * Watching never extends a session. A stream reconnects with the last resume token, so no event is duplicated or
 * lost. If the server has lost events, it sends MISSED.
 */
import { SessionEvent_Kind as Kind, type SessionEvent } from "../gen/session/v1/session_pb";
import { retryDelayMs } from "../session";
import { watchMySession } from "./browser-session";

// The server sends a heartbeat every 15 s. After three missed ones the stream is dead, even if it looks connected.
const SILENCE_MS = 45_000;
// The text format keeps everything it has received in memory, so the stream is reopened now and then.
const OLDEST_MS = 10 * 60_000;
// A stream that lasted this long was healthy: the next failure starts the backoff from the beginning.
const HEALTHY_MS = 5_000;
const UNIMPLEMENTED = 12;

export interface Watcher {
  event: (event: SessionEvent) => void;
  /** The stream reports that the session is gone. */
  missing: () => void;
}

/** Starts watching. The returned function stops it permanently. */
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
        // If the edge does not offer the stream, poll the session instead.
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
