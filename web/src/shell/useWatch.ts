import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useReducer, useState } from "react";
import { currentSessionQuery } from "../api/queries";
import { watchSessions } from "../api/watch";
import { Cause, SessionEvent_Kind as Kind } from "../gen/session/v1/session_pb";
import { useSession, useSessionStore } from "../session";

const CURRENT = currentSessionQuery.queryKey;
// The end of the old session may arrive some seconds before the response that sets the new session's cookie.
const NEW_COOKIE_MS = 3_000;

/** Updates the page when sessions start, change or end elsewhere. Returns why this session ended. */
export function useWatch(): Cause {
  const { user } = useSession();
  const store = useSessionStore();
  const queries = useQueryClient();
  const [cause, setCause] = useState(Cause.UNSPECIFIED);
  const subject = user?.sub;

  const [turn, watchAgain] = useReducer((turn: number) => turn + 1, 0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another turn opens a stream for the current session
  useEffect(() => {
    if (!subject) return;
    setCause(Cause.UNSPECIFIED);
    let follow: ReturnType<typeof setTimeout> | undefined;
    const followNewSession = async () => {
      await store.check();
      void queries.invalidateQueries();
      watchAgain();
    };
    const stop = watchSessions({
      missing: () => void store.check(),
      event({ kind, handle, cause }) {
        const mine = queries.getQueryData(CURRENT)?.session.handle === handle;
        if (mine && kind === Kind.ENDED) {
          setCause(cause);
          // Otherwise a sign-in in another tab of this browser ended it.
          if (cause !== Cause.REPLACED) return void store.check();
          stop();
          follow = setTimeout(() => void followNewSession(), NEW_COOKIE_MS);
          return;
        }
        if (mine && kind === Kind.CHANGED) void store.check();
        void queries.invalidateQueries({ queryKey: ["sessions"] });
        if (mine || kind === Kind.MISSED) void queries.invalidateQueries({ queryKey: CURRENT });
      },
    });
    return () => {
      clearTimeout(follow);
      stop();
    };
  }, [subject, turn, store, queries]);

  return cause;
}
