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
/** How long before the end of a session the warning appears. */
const WARN_MS = 2 * 60_000;

/** Extends this browser's session and caches the response. */
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

/** The latest possible end whose warning the person closed; other pages do not show it again. */
let closedEndMs = 0;

/** Two minutes before the session ends: shows a countdown and the available actions. */
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

/** The end that use can extend: the person must choose to stay or to leave. */
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
          {/* First in the focus order: a key pressed while the dialog opens must not sign the person out. */}
          <Button look="primary" busy={roll.isPending} onClick={() => roll.mutate()}>
            {say.stay}
          </Button>
        </>
      }
    />
  );
}

/** The end that nothing can extend: the warning can be closed, because the page works until then. */
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
