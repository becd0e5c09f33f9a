import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { currentSessionQuery, msOf } from "../api/queries";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { words } from "../words";
import { briefly } from "../words/times";

const say = words.theft;
// Which one it was, by its moment: that tells nobody anything.
const KEY = "theft-dismissed";

/** Says that another session of this person was ended because of a copy of its cookie, until it is dismissed. */
export function TheftNotice({ children }: { children?: ReactNode }) {
  // The guard reads the session already, and keeps it up to date.
  const { data } = useQuery({ ...currentSessionQuery, enabled: false });
  const [dismissed, setDismissed] = useState(remembered);
  const at = msOf(data?.session.theftAt);
  if (at === null || at === dismissed) return null;
  const dismiss = () => {
    remember(at);
    setDismissed(at);
    // The button goes with the notice; the focus must not get lost.
    document.querySelector("h1")?.focus({ preventScroll: true });
  };
  return (
    <Notice
      heading
      title={say.title}
      detail={say.detail(briefly(at))}
      action={
        <>
          {children}
          <Button small onClick={dismiss}>
            {say.dismiss}
          </Button>
        </>
      }
    />
  );
}

function remembered(): number {
  try {
    return Number(localStorage.getItem(KEY));
  } catch {
    return 0;
  }
}

function remember(at: number): void {
  try {
    localStorage.setItem(KEY, String(at));
  } catch {
    // Without storage it comes back with the next page.
  }
}
