import { useQuery } from "@tanstack/react-query";
import { type CurrentSession, currentSessionQuery, msOf } from "../../api/queries";
import { useServerNow } from "../../clock";
import { useRoll } from "../../shell/ExpiryWarning";
import { Failure } from "../../shell/Failure";
import { Page } from "../../shell/Page";
import { Button } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { Notice } from "../../ui/Notice";
import { Bar, Loading } from "../../ui/Skeleton";
import { wordFor, words } from "../../words";
import { briefly } from "../../words/times";
import styles from "./ThisSession.module.css";
import { TimelineDrawing } from "./TimelineDrawing";
import { timelineOf } from "./timeline";

const say = words.session;

/** Draws this session as a timeline, and offers to extend it. */
export function ThisSession() {
  const { data, error, refetch, isFetching } = useQuery(currentSessionQuery);
  const roll = useRoll();
  const until = msOf(roll.data?.session?.expiresAt);
  return (
    <Page title={say.title} lead={say.lead}>
      {data && <Length {...data} busy={roll.isPending} stay={() => roll.mutate()} />}
      <div aria-live="polite" className={styles.outcome}>
        {roll.isSuccess && until !== null && (
          <Notice kind="good" icon="check" title={say.stayed(briefly(until))} />
        )}
        {roll.isError && <Failure title={say.stayFailed} error={roll.error} />}
      </div>
      {data ? (
        <Scopes scope={data.session.scope} />
      ) : error ? (
        <Failure title={words.account.failed} error={error} busy={isFetching} retry={refetch} />
      ) : (
        <Placeholder />
      )}
    </Page>
  );
}

function Length({ session, skewMs, busy, stay }: CurrentSession & { busy: boolean; stay: () => void }) {
  const now = useServerNow(skewMs, 1_000);
  const timeline = timelineOf(session, now);
  return (
    <Card
      title={say.timeline}
      action={
        <Button look="primary" small busy={busy} onClick={stay}>
          {busy ? say.staying : say.stay}
        </Button>
      }
    >
      {timeline && <TimelineDrawing timeline={timeline} nowMs={now} />}
    </Card>
  );
}

function Scopes({ scope }: { scope: string }) {
  const scopes = scope.split(" ").filter(Boolean);
  return (
    <Card title={say.scopes}>
      {scopes.length === 0 && <p>{say.noScopes}</p>}
      <ul className={styles.scopes}>
        {scopes.map((name) => (
          <li key={name}>
            {Object.hasOwn(say.scopeMeanings, name) && <span>{wordFor(say.scopeMeanings, name)}</span>}
            <code dir="ltr">{name}</code>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Placeholder() {
  return (
    <Loading label={say.loading}>
      <div className={styles.placeholder}>
        {[20, 60, 24, 22, 26].map((width) => (
          <p key={width}>
            <Bar width={width} />
          </p>
        ))}
      </div>
    </Loading>
  );
}
