import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type RefObject, useId, useRef, useState } from "react";
import { endFoundSessions } from "../../api/operator";
import { currentSessionQuery } from "../../api/queries";
import { RpcFailure } from "../../api/rpc-error";
import type { Session } from "../../gen/session/v1/session_pb";
import { useSessionStore } from "../../session";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { CheckField, TextField } from "../../ui/Field";
import { words } from "../../words";
import { inDigits, operatorWords } from "../../words/operator";
import { endInParts } from "./ending-loop";
import { filterOf, type Search } from "./filter";
import styles from "./Operator.module.css";
import { StoredText } from "./StoredText";
import { Trouble } from "./Trouble";
import { cleanText } from "./text";

const say = operatorWords.ending;

export interface EndDialogProps {
  purpose: string;
  search: Search;
  /** The sessions of the search that the page knows, and whether there are more. */
  found: readonly Session[];
  hasMore: boolean;
  title: string;
  /** Names of the provider: the operator has to write one of them. */
  confirm?: readonly string[] | undefined;
  /** Called with the outcome in words; null if nothing has ended. */
  onClose: (outcome: string | null) => void;
  /** Where the page shows the outcome: it takes the focus, because the button may be gone. */
  outcomeBox: RefObject<HTMLElement | null>;
}

/** Whether a search can find this session. */
const covers = ({ issuer, kind, value }: Search, own: Session): boolean =>
  issuer === own.issuer &&
  (kind === "everyone" ||
    (kind === "subject" && value === own.subject) ||
    (kind === "provider_sid" && value === own.providerSid));

/** Asks why the sessions of a search shall end, and ends them part by part. */
export function EndDialog(props: EndDialogProps) {
  const { purpose, search, found, hasMore, title, confirm, onClose, outcomeBox } = props;
  const own = useQuery({ ...currentSessionQuery, enabled: false }).data?.session;
  const isOwn = search.kind === "handle" && search.value === own?.handle;
  const coversOwn = own !== undefined && covers(search, own);
  const store = useSessionStore();
  const queries = useQueryClient();
  const [reason, setReason] = useState(purpose);
  const [message, setMessage] = useState("");
  const [written, setWritten] = useState("");
  const [withOwn, setWithOwn] = useState(false);
  const [ended, setEnded] = useState(0);
  const count = useRef(0);
  const stopped = useRef(false);
  const closedWith = useRef<string | null>(null);
  const field = useRef<HTMLElement>(null);
  const form = useId();

  const endPart = (part: Search, exceptHandle: string) =>
    endFoundSessions(cleanText(reason), filterOf(part), exceptHandle, cleanText(message));
  const onEnded = (more: number) => {
    count.current += more;
    setEnded(count.current);
  };
  const closeWith = (outcome: string | null) => {
    closedWith.current = outcome;
    onClose(outcome);
  };
  const end = useMutation({
    mutationFn: async () => {
      stopped.current = false;
      // Without the answer the operator's own session could not be spared.
      const { handle } = (await queries.ensureQueryData(currentSessionQuery)).session;
      const isComplete = await endInParts({
        endPart: () => endPart(search, search.kind === "handle" ? "" : handle),
        isStopped: () => stopped.current,
        onEnded,
      });
      // The operator's own session ends last: without it, nothing else can be ended.
      if (isComplete && withOwn)
        onEnded((await endPart({ ...search, kind: "handle", value: handle }, "")).endedCount);
      return isComplete;
    },
    onSuccess: (isComplete) => {
      if (isOwn || withOwn) void store.check();
      closeWith(outcomeOf(count.current, isComplete));
    },
    onError: (error) => {
      if (error instanceof RpcFailure && (error.missingSession || error.transient)) void store.check();
    },
  });
  const close = () => {
    if (end.isPending) stopped.current = true;
    else closeWith(count.current > 0 ? outcomeOf(count.current, false) : null);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!end.isPending) end.mutate();
  };
  const others = found.filter(({ handle }) => withOwn || isOwn || handle !== own?.handle).length;
  const effect = hasMore ? say.effectMany(inDigits(others)) : say.effect(inDigits(others), others === 1);
  const accepted = confirm?.map(fold) ?? [];
  return (
    <Dialog
      title={title}
      detail={search.kind === "handle" ? (isOwn ? say.effectOwn : say.effectOne) : effect}
      focusFirst={field}
      focusAfter={() => (closedWith.current ? outcomeBox.current : null)}
      onClose={close}
      actions={
        <>
          <Button look="quiet" onClick={close}>
            {end.isPending ? say.stop : words.sessions.cancel}
          </Button>
          <Button look="danger" type="submit" form={form} busy={end.isPending}>
            {end.isPending
              ? say.running
              : end.isError
                ? say.goOn
                : search.kind === "handle"
                  ? say.end
                  : say.endMany}
          </Button>
        </>
      }
    >
      <form id={form} className={styles.dialogForm} onSubmit={submit}>
        <StoredText
          label={say.reason}
          hint={say.reasonHint}
          value={reason}
          onValue={setReason}
          focus={field}
          required
        />
        <StoredText
          label={say.message}
          hint={say.messageHint}
          value={message}
          onValue={setMessage}
          rows={2}
        />
        {confirm && (
          <TextField
            label={say.confirm(confirm[0] ?? "")}
            value={written}
            onValue={setWritten}
            problem={accepted.includes(fold(written)) ? "" : say.mismatch}
            autoComplete="off"
          />
        )}
        {coversOwn && <CheckField label={say.own} hint={say.ownHint} on={withOwn} onChange={setWithOwn} />}
        <p role="status" className={styles.outcome}>
          {end.isPending && say.progress(inDigits(ended), ended === 1)}
        </p>
        {end.isError && (
          <Trouble
            title={say.failed}
            detail={ended > 0 ? say.failedDetail(inDigits(ended)) : undefined}
            error={end.error}
          />
        )}
      </form>
    </Dialog>
  );
}

const fold = (name: string) => name.trim().toLowerCase();

const outcomeOf = (count: number, isComplete: boolean): string =>
  isComplete ? say.done(inDigits(count), count === 1) : say.stopped(inDigits(count));
