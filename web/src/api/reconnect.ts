/** Keeps a server stream open: reopens it with backoff when it breaks, falls silent, or grows old. */
import { retryDelayMs } from "../session";
import type { RpcFailure } from "./rpc-error";
import type { StreamReader } from "./transport";

// The server sends a heartbeat every 15 s. After three missed ones the stream is dead, even if it looks connected.
const SILENCE_MS = 45_000;
// The text format keeps everything it has received in memory, so the stream is reopened now and then.
const OLDEST_MS = 10 * 60_000;
// A stream that lasted this long was healthy: the next failure starts the backoff from the beginning.
const HEALTHY_MS = 5_000;

export interface Kept<T> {
  /** Opens the stream and returns what closes it. */
  open: (reader: StreamReader<T>) => () => void;
  message: (message: T) => void;
  /** The stream broke. Returns whether a new one makes sense. */
  broken: (failure: RpcFailure | null) => boolean;
}

/** Opens the stream. The returned function closes it permanently. */
export function keepOpen<T>({ open, message, broken }: Kept<T>): () => void {
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
    close = open({
      message(received) {
        listen();
        message(received);
      },
      end(failure) {
        if (stopped) return;
        hush();
        if (!broken(failure)) return;
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
