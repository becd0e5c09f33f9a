import { useQuery } from "@tanstack/react-query";
import { currentSessionQuery, msOf } from "../api/queries";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { words } from "../words";
import { briefly } from "../words/times";
import { useDismissed } from "./dismissed";

/** Shows what an operator who signed this person out wrote for them, until it is dismissed. The text is plain text. */
export function OperatorNotice() {
  // The guard reads the session and keeps it current.
  const { data } = useQuery({ ...currentSessionQuery, enabled: false });
  const [dismissed, dismiss] = useDismissed("operator-notice-dismissed");
  const at = msOf(data?.session.operatorNotice?.at);
  if (at === null || at === dismissed) return null;
  return (
    <Notice
      heading
      title={words.operatorNotice(briefly(at))}
      detail={<bdi>{data?.session.operatorNotice?.text}</bdi>}
      action={
        <Button small onClick={() => dismiss(at)}>
          {words.theft.dismiss}
        </Button>
      }
    />
  );
}
