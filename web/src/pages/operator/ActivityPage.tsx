import { useEffect, useRef, useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { msOf } from "../../api/queries";
import type { SignInFailures } from "../../gen/session/v1/operator_session_service_pb";
import { Badge } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { SelectField } from "../../ui/Field";
import hidden from "../../ui/visually-hidden.module.css";
import { wordFor } from "../../words";
import { inDigits, operatorWords, toTheSecond } from "../../words/operator";
import { briefly } from "../../words/times";
import { type Log, MOST_ROWS, type Row } from "./activity-log";
import { Frame } from "./Frame";
import { issuerOf, operatorPaths, personAddress } from "./filter";
import styles from "./Operator.module.css";
import { causeInWords, type Props } from "./person";
import { Trouble } from "./Trouble";
import { useActivity } from "./useActivity";

const say = operatorWords.activity;
// Screen readers announce the counts at most this often: an announcement of each event would never end.
const ANNOUNCE_MS = 10_000;

/** Shows sign-ins and endings as they happen. */
export function ActivityPage({ providers, operator }: Props) {
  const [params] = useSearchParams();
  const [, navigate] = useLocation();
  const issuers = providers.map((provider) => provider.issuer);
  const issuer = issuerOf(params, issuers) ?? issuers[0] ?? "";
  return (
    <Frame title={say.title} lead={say.lead} subject={operator}>
      {(purpose) => (
        <>
          {providers.length > 1 && (
            <div className={styles.narrow}>
              <SelectField
                label={operatorWords.provider}
                value={issuer}
                onValue={(chosen) =>
                  navigate(`${operatorPaths.activity}?${new URLSearchParams({ provider: chosen })}`)
                }
                options={providers.map((provider) => [provider.issuer, provider.name || provider.issuer])}
              />
            </div>
          )}
          <Watched key={issuer} purpose={purpose} issuer={issuer} />
        </>
      )}
    </Frame>
  );
}

function Watched({ purpose, issuer }: { purpose: string; issuer: string }) {
  const { log, isConnected, failure } = useActivity(purpose, issuer);
  const [frozen, setFrozen] = useState<Log | null>(null);
  const { rows } = frozen ?? log;
  const counts = say.counts(inDigits(log.signIns), inDigits(log.endings));
  return (
    <>
      {failure && <Trouble title={say.failed} error={failure} />}
      <Card
        title={say.events}
        action={
          <Button small onClick={() => setFrozen(frozen ? null : log)}>
            {frozen ? say.resume : say.pause}
          </Button>
        }
      >
        <div className={styles.head}>
          <p className={styles.muted}>{counts}</p>
          {frozen ? (
            <Badge quiet>
              {log.total > frozen.total ? say.waiting(inDigits(log.total - frozen.total)) : say.pausedNow}
            </Badge>
          ) : (
            <Badge quiet={!isConnected}>{isConnected ? say.live : say.connecting}</Badge>
          )}
        </div>
        <Announcement said={log.total > 0 ? counts : ""} />
        {rows.length === 0 ? <p>{say.none}</p> : <Events rows={rows} />}
        {rows.length >= MOST_ROWS && <p className={styles.muted}>{say.bounded(inDigits(MOST_ROWS))}</p>}
      </Card>
      <Failures failures={log.failures} />
    </>
  );
}

function Events({ rows }: { rows: readonly Row[] }) {
  return (
    <ol className={styles.events} aria-label={say.events}>
      {rows.map((row) => (
        <li key={row.number}>
          <time
            className={styles.time}
            dateTime={row.atMs === null ? undefined : new Date(row.atMs).toISOString()}
          >
            {row.atMs === null ? "–" : toTheSecond(row.atMs)}
          </time>
          <span>
            {row.what === "lost" ? say.lost : row.what === "sign-in" ? say.signIn : causeInWords(row.cause)}
          </span>
          {row.subject && (
            <Link to={personAddress(row.issuer, row.subject)}>
              <bdi>{row.subject}</bdi>
            </Link>
          )}
        </li>
      ))}
    </ol>
  );
}

/** The latest text for screen readers, renewed now and then. */
function Announcement({ said }: { said: string }) {
  const latest = useRef(said);
  useEffect(() => {
    latest.current = said;
  }, [said]);
  const [announced, setAnnounced] = useState("");
  useEffect(() => {
    const timer = setInterval(() => setAnnounced(latest.current), ANNOUNCE_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <p role="status" className={hidden.hidden}>
      {announced}
    </p>
  );
}

/** Failed sign-ins by error. Each replica of the edge counts its own. */
function Failures({ failures }: { failures: SignInFailures | null }) {
  const errors = Object.entries(failures?.byError ?? {}).sort(([, a], [, b]) => Number(b - a));
  const sinceMs = msOf(failures?.since);
  return (
    <Card title={say.failures}>
      {sinceMs !== null && <p className={styles.muted}>{say.since(briefly(sinceMs))}</p>}
      {errors.length === 0 ? (
        <p>{say.noFailures}</p>
      ) : (
        <table className={styles.counts} aria-label={say.failures}>
          <thead className={styles.columns}>
            <tr>
              <th scope="col">{say.error}</th>
              <th scope="col">{say.count}</th>
            </tr>
          </thead>
          <tbody>
            {errors.map(([error, count]) => {
              const meaning = wordFor(operatorWords.errors, error.replace(/^token_.*/, "token"));
              return (
                <tr key={error}>
                  <th scope="row">
                    {meaning && <span>{meaning} </span>}
                    <code className={styles.code}>{error}</code>
                  </th>
                  <td>{inDigits(Number(count))}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </Card>
  );
}
