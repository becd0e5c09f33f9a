import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { currentSessionQuery, msOf } from "../api/queries";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { words } from "../words";
import { briefly } from "../words/times";

const say = words.theft;
// Stores the time of the dismissed theft; a time reveals nothing about the person.
const KEY = "theft-dismissed";

/** Reports that another session of this person was ended because its cookie was copied, until it is dismissed. */
export function TheftNotice({ children }: { children?: ReactNode }) {
  // The guard reads the session and keeps it current.
  const { data } = useQuery({ ...currentSessionQuery, enabled: false });
  const [dismissed, setDismissed] = useState(remembered);
  const at = msOf(data?.session.theftAt);
  if (at === null || at === dismissed) return null;
  const dismiss = () => {
    remember(at);
    setDismissed(at);
    // Dismissing removes the button; the focus must not get lost.
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
    // Without storage the notice returns on the next page.
  }
}
