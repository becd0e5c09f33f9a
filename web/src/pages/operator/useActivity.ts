import { useEffect, useReducer, useState } from "react";
import { watchActivity } from "../../api/operator";
import { keepOpen } from "../../api/reconnect";
import type { RpcFailure } from "../../api/rpc-error";
import type { Activity } from "../../gen/session/v1/operator_session_service_pb";
import { useSessionStore } from "../../session";
import { add, EMPTY, type Log } from "./activity-log";
import { refusalOf } from "./queries";

export interface Live {
  log: Log;
  isConnected: boolean;
  /** Why the stream ended permanently; null while it is open or will open again. */
  failure: RpcFailure | null;
}

/** Watches a provider while the page is open. */
export function useActivity(purpose: string, issuer: string): Live {
  const store = useSessionStore();
  const [log, addToLog] = useReducer(add, EMPTY);
  const [isConnected, setConnected] = useState(false);
  const [failure, setFailure] = useState<RpcFailure | null>(null);
  useEffect(() => {
    setFailure(null);
    return keepOpen<Activity>({
      open: (reader) => watchActivity(purpose, issuer, reader),
      message(activity) {
        setConnected(true);
        addToLog(activity);
      },
      broken(reason) {
        setConnected(false);
        if (reason?.missingSession) void store.check();
        if (refusalOf(reason)) setFailure(reason);
        return !reason?.missingSession && refusalOf(reason) === null;
      },
    });
  }, [purpose, issuer, store]);
  return { log, isConnected, failure };
}
