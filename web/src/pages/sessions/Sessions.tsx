import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { endMyOtherSessions, endMySession } from "../../api/browser-session";
import { useServerNow } from "../../clock";
import { type Session, Session_State as State } from "../../gen/session/v1/session_pb";
import { Failure } from "../../shell/Failure";
import { useLeave } from "../../shell/leaving";
import { Page } from "../../shell/Page";
import { TheftNotice } from "../../shell/TheftNotice";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { words } from "../../words";
import { deviceName } from "../../words/devices";
import { inOrder, sessionsQuery, without } from "./queries";
import { SessionRow, SessionRowSkeleton } from "./SessionRow";
import styles from "./Sessions.module.css";

const say = words.sessions;
const TICK_MS = 10_000;

const nameOf = (session: Session) =>
  session.state === State.UNREADABLE
    ? say.unreadable
    : deviceName((session.lastSeenOn ?? session.createdOn)?.userAgent ?? "");

/** Every session of this person, and the way to end each. */
export function Sessions() {
  const list = useInfiniteQuery(sessionsQuery);
  const now = useServerNow(list.data?.pages.at(-1)?.skewMs ?? 0, TICK_MS);
  const queries = useQueryClient();
  const signOut = useLeave();
  const [said, setSaid] = useState("");
  const [asking, setAsking] = useState(false);
  const reread = () => queries.invalidateQueries({ queryKey: sessionsQuery.queryKey });
  const drop = (gone: (session: Session) => boolean) =>
    queries.setQueryData(sessionsQuery.queryKey, (data) => data && without(data, gone));

  const end = useMutation({
    mutationFn: (session: Session) => endMySession(session.handle),
    onMutate: () => setSaid(""),
    onSuccess: (_, session) => {
      drop(({ handle }) => handle === session.handle);
      setSaid(say.ended(nameOf(session)));
    },
    onSettled: reread,
  });
  const endOthers = useMutation({
    mutationFn: endMyOtherSessions,
    onMutate: () => setSaid(""),
    onSuccess: (count) => {
      drop(({ current }) => !current);
      setSaid(say.othersEnded(count));
    },
    onSettled: () => {
      setAsking(false);
      return reread();
    },
  });

  const sessions = list.data ? inOrder(list.data) : [];
  const others = sessions.filter(({ current }) => !current).length;
  return (
    <Page title={say.title} lead={say.lead}>
      <div aria-live="polite" className={styles.outcome}>
        <TheftNotice />
      </div>
      <div aria-live="polite" className={styles.outcome}>
        {said && <Notice kind="good" icon="check" title={said} />}
      </div>
      {end.isError && (
        <Failure
          title={say.endFailed(nameOf(end.variables))}
          detail={say.endFailedDetail}
          error={end.error}
        />
      )}
      {endOthers.isError && (
        <Failure title={say.othersFailed} detail={say.endFailedDetail} error={endOthers.error} />
      )}
      {list.isError && !list.data && (
        <Failure title={say.failed} error={list.error} busy={list.isFetching} retry={list.refetch} />
      )}
      {list.isPending && <SessionRowSkeleton />}
      {list.data && (
        <ul className={styles.list}>
          {sessions.map((session) => (
            <SessionRow
              key={session.handle}
              session={session}
              name={nameOf(session)}
              now={now}
              busy={end.isPending && end.variables.handle === session.handle}
              onEnd={() => (session.current ? signOut() : end.mutate(session))}
            />
          ))}
        </ul>
      )}
      {list.data && (
        <div className={styles.foot}>
          {list.hasNextPage && (
            <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              {say.more}
            </Button>
          )}
          {others === 0 && !list.hasNextPage && <p className={styles.alone}>{say.onlyThis}</p>}
          {(others > 0 || list.hasNextPage) && (
            <Button look="danger" busy={endOthers.isPending} onClick={() => setAsking(true)}>
              {say.endOthers}
            </Button>
          )}
        </div>
      )}
      {asking && (
        <Dialog
          title={say.endOthersAsk}
          detail={say.endOthersDetail(others)}
          onClose={() => setAsking(false)}
          actions={
            <>
              <Button look="quiet" onClick={() => setAsking(false)}>
                {say.cancel}
              </Button>
              <Button look="danger" busy={endOthers.isPending} onClick={() => endOthers.mutate()}>
                {say.endOthers}
              </Button>
            </>
          }
        />
      )}
    </Page>
  );
}
