/**
 * Receives the events of this person's sessions.
 *
 * Watching never extends a session. A stream reconnects with the last resume token, so no event is duplicated or
 * lost. If the server has lost events, it sends MISSED.
 */
import { SessionEvent_Kind as Kind, type SessionEvent } from "../gen/session/v1/session_pb";
import { watchMySession } from "./browser-session";
import { keepOpen } from "./reconnect";
import { UNIMPLEMENTED } from "./rpc-error";

export interface Watcher {
  event: (event: SessionEvent) => void;
  /** The stream reports that the session is gone. */
  missing: () => void;
}

/** Starts watching. The returned function stops it permanently. */
export function watchSessions({ event, missing }: Watcher): () => void {
  let resumeToken = "";
  return keepOpen<SessionEvent>({
    open: (reader) => watchMySession(resumeToken, reader),
    message(message) {
      if (message.resumeToken) resumeToken = message.resumeToken;
      if (message.kind !== Kind.HEARTBEAT) event(message);
    },
    broken(failure) {
      if (failure?.missingSession) missing();
      // If the edge does not offer the stream, the page polls the session instead.
      return !failure?.missingSession && failure?.code !== UNIMPLEMENTED;
    },
  });
}
