import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { currentSessionQuery } from "../api/queries";
import { watchSessions } from "../api/watch";
import { SessionEvent_Kind as Kind } from "../gen/session/v1/session_pb";
import { useSession, useSessionStore } from "../session";

const CURRENT = currentSessionQuery.queryKey;

/** Keeps what is on the page true while sessions start, change and end elsewhere. Tells why this session ended. */
export function useWatch(): string {
  const { user } = useSession();
  const store = useSessionStore();
  const queries = useQueryClient();
  const [cause, setCause] = useState("");
  const subject = user?.sub;

  useEffect(() => {
    if (!subject) return;
    setCause("");
    return watchSessions({
      missing: () => void store.check(),
      event({ kind, handle, cause }) {
        const mine = queries.getQueryData(CURRENT)?.session.handle === handle;
        if (mine && kind === Kind.ENDED) {
          setCause(cause);
          void store.check();
          return;
        }
        if (mine && kind === Kind.CHANGED) void store.check();
        void queries.invalidateQueries({ queryKey: ["sessions"] });
        if (mine || kind === Kind.MISSED) void queries.invalidateQueries({ queryKey: CURRENT });
      },
    });
  }, [subject, store, queries]);

  return cause;
}
