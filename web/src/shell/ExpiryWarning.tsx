import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { rollCurrentSession } from "../api/browser-session";
import { currentSessionQuery, msOf, skewOf } from "../api/queries";
import { useServerNow } from "../clock";
import { useSessionStore } from "../session";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { words } from "../words";
import { countdown } from "../words/times";
import { useLeave } from "./leaving";

const say = words.expiry;
/** How long before its end a session is announced to end. */
const WARN_MS = 2 * 60_000;

/** Extends this browser's session and remembers the answer. */
export function useRoll() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: rollCurrentSession,
    onSuccess: ({ session, serverTime }) => {
      if (session) {
        queries.setQueryData(currentSessionQuery.queryKey, (before) => ({
          session,
          skewMs: skewOf(serverTime, Date.now()),
          providerName: before?.providerName ?? "",
        }));
      }
    },
  });
}

/** Two minutes before the session ends: a countdown, and the choice to stay. */
export function ExpiryWarning() {
  const { data } = useQuery(currentSessionQuery);
  const expiresAt = data ? msOf(data.session.expiresAt) : null;
  if (!data || expiresAt === null) return null;
  return <Countdown key={expiresAt} expiresAt={expiresAt} skewMs={data.skewMs} />;
}

function Countdown({ expiresAt, skewMs }: { expiresAt: number; skewMs: number }) {
  const now = useServerNow(skewMs, 1_000);
  const store = useSessionStore();
  const [checked, setChecked] = useState(false);
  const roll = useRoll();
  const signOut = useLeave();
  // A key pressed while the dialog comes up must not sign anybody out.
  const stay = useRef<HTMLButtonElement>(null);
  const left = expiresAt - now;
  if (left > WARN_MS) return null;
  if (left <= 0) {
    if (!checked) {
      setChecked(true);
      queueMicrotask(() => void store.check());
    }
    return null;
  }
  return (
    <Dialog
      title={say.title}
      initialFocus={stay}
      detail={<span role="timer">{say.detail(countdown(left))}</span>}
      actions={
        <>
          <Button look="quiet" onClick={signOut}>
            {say.signOut}
          </Button>
          <Button ref={stay} look="primary" busy={roll.isPending} onClick={() => roll.mutate()}>
            {say.stay}
          </Button>
        </>
      }
    />
  );
}
