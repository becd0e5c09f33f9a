import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { currentSessionQuery, msOf } from "../api/queries";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { words } from "../words";
import { briefly } from "../words/times";
import { useDismissed } from "./dismissed";

const say = words.theft;

export interface TheftNoticeProps {
  /** A way to look at the sessions, if the page does not list them. */
  children?: ReactNode;
}

/** Reports that another session of this person was ended because its cookie was copied, until it is dismissed. */
export function TheftNotice({ children }: TheftNoticeProps) {
  // The guard reads the session and keeps it current.
  const { data } = useQuery({ ...currentSessionQuery, enabled: false });
  const [dismissed, dismiss] = useDismissed("theft-dismissed");
  const at = msOf(data?.session.theftAt);
  if (at === null || at === dismissed) return null;
  return (
    <Notice
      heading
      title={say.title}
      detail={say.detail(briefly(at))}
      action={
        <>
          {children}
          <Button small onClick={() => dismiss(at)}>
            {say.dismiss}
          </Button>
        </>
      }
    />
  );
}
