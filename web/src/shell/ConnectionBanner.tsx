import { useState, useSyncExternalStore } from "react";
import { useSession } from "../session";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { words } from "../words";

function subscribe(listener: () => void): () => void {
  window.addEventListener("online", listener);
  window.addEventListener("offline", listener);
  return () => {
    window.removeEventListener("online", listener);
    window.removeEventListener("offline", listener);
  };
}

/** Reports a network or service outage while it lasts. The rest of the page stays. */
export function ConnectionBanner({ className }: { className: string | undefined }) {
  const { error, checkSession } = useSession();
  const online = useSyncExternalStore(subscribe, () => navigator.onLine);
  const [busy, setBusy] = useState(false);
  const retry = () => {
    setBusy(true);
    void checkSession().finally(() => setBusy(false));
  };
  const shown = !online || error?.transient === true;
  return (
    // The live region exists before its text, so that screen readers announce the text.
    <div className={shown ? className : undefined} aria-live="polite">
      {shown && (
        <Notice
          icon={online ? "warning" : "offline"}
          title={online ? words.connection.down : words.connection.offline}
          detail={online ? words.connection.downDetail : words.connection.offlineDetail}
          reference={error?.requestId ? words.reference(error.requestId) : undefined}
          action={
            <Button small busy={busy} icon="refresh" onClick={retry}>
              {busy ? words.retrying : words.retry}
            </Button>
          }
        />
      )}
    </div>
  );
}
