import { RpcFailure } from "../api/rpc-error";
import { Button } from "../ui/Button";
import { Notice } from "../ui/Notice";
import { words } from "../words";

/** Reports a failed read: what failed, the reference to quote, and a way to retry. */
export function Failure(props: {
  title: string;
  error: Error;
  busy?: boolean;
  retry?: () => unknown;
  detail?: string;
}) {
  const { title, error, busy = false, retry, detail } = props;
  const requestId = error instanceof RpcFailure ? error.requestId : null;
  return (
    <Notice
      kind="danger"
      title={title}
      detail={detail}
      reference={requestId ? words.reference(requestId) : undefined}
      action={
        retry && (
          <Button small busy={busy} icon="refresh" onClick={() => void retry()}>
            {busy ? words.retrying : words.retry}
          </Button>
        )
      }
    />
  );
}
