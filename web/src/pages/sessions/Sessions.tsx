import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { endMyOtherSessions, endMySession } from "../../api/browser-session";
import { useServerNow } from "../../clock";
import type { Session } from "../../gen/session/v1/session_pb";
import { Failure } from "../../shell/Failure";
import { useLeave } from "../../shell/leaving";
import { Page } from "../../shell/Page";
import { SessionNotices } from "../../shell/SessionNotices";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Notice } from "../../ui/Notice";
import { words } from "../../words";
import { labelsOf, nameOf, saySharedFacts, sharedFacts } from "./facts";
import { allOf, inOrder, sessionsQuery } from "./queries";
import { EndedRow, SessionRow } from "./SessionRow";
import styles from "./Sessions.module.css";
import { SessionsSkeleton } from "./SessionsSkeleton";

const say = words.sessions;
const TICK_MS = 10_000;

/** Lists all sessions of this person, with a button to end each. */
export function Sessions() {
  const list = useInfiniteQuery(sessionsQuery);
  const now = useServerNow(list.data?.pages.at(-1)?.skewMs ?? 0, TICK_MS);
  const queries = useQueryClient();
  const signOut = useLeave();
  // Sessions that were ended on this page keep their place in the list and show the outcome.
  const [ended, setEnded] = useState<readonly Session[]>([]);
  const [othersEnded, setOthersEnded] = useState<number | null>(null);
  const [asking, setAsking] = useState(false);
  const outcome = useRef<HTMLDivElement>(null);
  const reread = () => queries.invalidateQueries({ queryKey: sessionsQuery.queryKey });

  const end = useMutation({
    mutationFn: (session: Session) => endMySession(session.handle),
    onMutate: () => setOthersEnded(null),
    onSuccess: (_, session) => setEnded((before) => [...before, session]),
    onSettled: reread,
  });
  const endOthers = useMutation({
    mutationFn: endMyOtherSessions,
    onSuccess: (count) => {
      setEnded([]);
      setOthersEnded(count);
    },
    onSettled: async () => {
      // The dialog stays open until the list no longer holds the sessions it ended.
      await reread();
      setAsking(false);
    },
  });
  const ask = () => {
    setOthersEnded(null);
    endOthers.reset();
    setAsking(true);
  };

  const isEnded = ({ handle }: Session) => ended.some((one) => one.handle === handle);
  const sessions = list.data ? allOf(list.data).filter((session) => !isEnded(session)) : [];
  const others = sessions.filter(({ current }) => !current).length;
  // Sessions that are not loaded yet cannot be described.
  const shared = sharedFacts(list.hasNextPage ? [] : sessions);
  const labels = labelsOf(sessions);
  return (
    <Page title={say.title} lead={say.lead}>
      <div aria-live="polite" className={styles.outcome}>
        <SessionNotices />
      </div>
      <div aria-live="polite" className={styles.outcome} tabIndex={-1} ref={outcome}>
        {othersEnded !== null && <Notice kind="good" icon="check" title={say.othersEnded(othersEnded)} />}
        {endOthers.isError && (
          <Failure title={say.othersFailed} detail={say.endFailedDetail} error={endOthers.error} />
        )}
      </div>
      {list.isError && !list.data && (
        <Failure title={say.failed} error={list.error} busy={list.isFetching} retry={list.refetch} />
      )}
      {list.isPending && <SessionsSkeleton />}
      {list.data && (
        <>
          <div className={styles.head}>
            {others === 0 && !list.hasNextPage ? (
              <p>{say.onlyThis}</p>
            ) : (
              <>
                {saySharedFacts(shared) && <p>{say.shared(saySharedFacts(shared))}</p>}
                <Button look="danger" busy={endOthers.isPending} onClick={ask}>
                  {say.endOthers}
                </Button>
              </>
            )}
          </div>
          <ul className={styles.list}>
            {inOrder([...sessions, ...ended]).map((session) =>
              isEnded(session) ? (
                <EndedRow key={`ended ${session.handle}`} session={session} />
              ) : (
                <SessionRow
                  key={session.handle}
                  session={session}
                  shared={shared}
                  label={labels.get(session.handle) ?? nameOf(session)}
                  now={now}
                  busy={end.isPending && end.variables.handle === session.handle}
                  onEnd={() => (session.current ? signOut() : end.mutate(session))}
                  failure={
                    end.isError &&
                    end.variables.handle === session.handle && (
                      <Failure
                        title={say.endFailed(nameOf(session))}
                        detail={say.endFailedDetail}
                        error={end.error}
                      />
                    )
                  }
                />
              ),
            )}
          </ul>
          {list.hasNextPage && (
            <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              {say.more}
            </Button>
          )}
        </>
      )}
      {asking && (
        <Dialog
          title={say.endOthersAsk}
          detail={say.endOthersDetail(others)}
          onClose={() => setAsking(false)}
          // The button may disappear with the sessions it ended, so the focus moves to the outcome.
          focusAfter={() => (outcome.current?.hasChildNodes() ? outcome.current : null)}
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
