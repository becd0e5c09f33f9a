import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { rollCurrentSession } from "../api/browser-session";
import { currentSessionQuery, msOf, skewOf } from "../api/queries";
import { useServerNow } from "../clock";
import { here, loginUrl, useSessionStore } from "../session";
import { Button, LinkButton } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { words } from "../words";
import { atClock, countdown } from "../words/times";
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

/** The last possible end whose announcement was closed: another page does not announce it again. */
let closedEndMs = 0;

/** Two minutes before the session ends: a countdown, and what can be done about it. */
export function ExpiryWarning() {
  const { data } = useQuery(currentSessionQuery);
  const endMs = data ? msOf(data.session.expiresAt) : null;
  if (!data || endMs === null) return null;
  const isLast = msOf(data.session.absoluteExpiresAt) === endMs;
  return <Countdown key={endMs} endMs={endMs} isLast={isLast} skewMs={data.skewMs} />;
}

function Countdown({ endMs, isLast, skewMs }: { endMs: number; isLast: boolean; skewMs: number }) {
  const now = useServerNow(skewMs, 1_000);
  const store = useSessionStore();
  const [checked, setChecked] = useState(false);
  const leftMs = endMs - now;
  if (leftMs > WARN_MS) return null;
  if (leftMs <= 0) {
    if (!checked) {
      setChecked(true);
      queueMicrotask(() => void store.check());
    }
    return null;
  }
  return isLast ? <LastEnd endMs={endMs} leftMs={leftMs} /> : <IdleEnd leftMs={leftMs} />;
}

/** The end that use puts off: stay or leave, the question wants an answer. */
function IdleEnd({ leftMs }: { leftMs: number }) {
  const roll = useRoll();
  const signOut = useLeave();
  return (
    <Dialog
      title={say.title}
      detail={<span role="timer">{say.detail(countdown(leftMs))}</span>}
      actions={
        <>
          <Button look="quiet" onClick={signOut}>
            {say.signOut}
          </Button>
          {/* First in focus: a key pressed while the dialog comes up must not sign anyone out. */}
          <Button look="primary" busy={roll.isPending} onClick={() => roll.mutate()}>
            {say.stay}
          </Button>
        </>
      }
    />
  );
}

/** The end that nothing puts off: it can be closed, because the page still works until then. */
function LastEnd({ endMs, leftMs }: { endMs: number; leftMs: number }) {
  const [closed, setClosed] = useState(closedEndMs === endMs);
  if (closed) return null;
  const close = () => {
    closedEndMs = endMs;
    setClosed(true);
  };
  return (
    <Dialog
      title={say.lastTitle}
      detail={<span role="timer">{say.lastDetail(atClock(endMs), countdown(leftMs))}</span>}
      onClose={close}
      actions={
        <>
          <Button look="quiet" onClick={close}>
            {say.goOn}
          </Button>
          <LinkButton look="primary" href={loginUrl(here())}>
            {words.account.signInAgain}
          </LinkButton>
        </>
      }
    />
  );
}
