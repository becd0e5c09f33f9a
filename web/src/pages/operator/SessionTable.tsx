import type { ReactNode } from "react";
import { Link } from "wouter";
import { msOf } from "../../api/queries";
import { type Session, Session_State as State } from "../../gen/session/v1/session_pb";
import { Badge } from "../../ui/Badge";
import { Bar, Loading } from "../../ui/Skeleton";
import { Timestamp } from "../../ui/Timestamp";
import { deviceName } from "../../words/devices";
import { operatorWords } from "../../words/operator";
import { exactly, fromNow } from "../../words/times";
import { personAddress } from "./filter";
import styles from "./Operator.module.css";
import { lastDeviceOf, lastUseOf, personOf } from "./person";

const say = operatorWords.session;
const columns = operatorWords.columns;

// On narrow screens rows are cards. Some browsers then forget that this is a table, so the roles are explicit.
const TABLE = { role: "table" };
const GROUP = { role: "rowgroup" };
const ROW = { role: "row" };
const CELL = { role: "cell" };
const HEAD = { role: "columnheader", scope: "col" };

/** Sessions of several people. */
export function SessionTable({ sessions, now }: { sessions: readonly Session[]; now: number }) {
  return (
    <table {...TABLE} className={styles.table} aria-label={operatorWords.search.results}>
      <thead {...GROUP} className={styles.columns}>
        <tr {...ROW}>
          {Object.values(columns).map((name) => (
            <th key={name} {...HEAD}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody {...GROUP}>
        {sessions.map((session) => (
          <Row key={session.handle} session={session} now={now} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ session, now }: { session: Session; now: number }) {
  const { name, detail } = personOf(session);
  const device = lastDeviceOf(session);
  const isReadable = session.state !== State.UNREADABLE;
  return (
    <tr {...ROW}>
      <th {...{ role: "rowheader", scope: "row" }}>
        <Link to={personAddress(session.issuer, session.subject)}>
          <bdi>{name}</bdi>
        </Link>
        {detail && (
          <span className={styles.aside}>
            <bdi>{detail}</bdi>
          </span>
        )}
      </th>
      <Cell name={columns.device}>{isReadable ? deviceName(device?.userAgent ?? "") : "–"}</Cell>
      <Cell name={columns.address}>
        <bdi>{device?.address || "–"}</bdi>
      </Cell>
      <Cell name={columns.started}>
        <Ago ms={msOf(session.createdAt)} now={now} />
      </Cell>
      <Cell name={columns.lastActive}>
        <Ago ms={isReadable ? lastUseOf(session) : null} now={now} />
      </Cell>
      <Cell name={columns.binding}>{isReadable ? bindingOf(session) : "–"}</Cell>
      <Cell name={columns.state}>
        <StateBadge session={session} />
      </Cell>
    </tr>
  );
}

function Cell({ name, children }: { name: string; children: ReactNode }) {
  return (
    <td {...CELL} data-label={name}>
      <div>{children}</div>
    </td>
  );
}

function Ago({ ms, now }: { ms: number | null; now: number }) {
  return ms === null ? "–" : <Timestamp ms={ms} said={fromNow(ms, now)} exact={exactly(ms)} />;
}

export const bindingOf = (session: Session): string => (session.deviceBinding ? say.bound : say.unbound);

export function StateBadge({ session }: { session: Session }) {
  if (session.state === State.UNREADABLE) return <Badge quiet>{say.unreadable}</Badge>;
  const isDue = session.state === State.NEEDS_SIGN_IN || session.signInDemand !== undefined;
  return isDue ? <Badge quiet>{say.needsSignIn}</Badge> : <Badge>{say.active}</Badge>;
}

/** Placeholder of the table while it loads. */
export function TableSkeleton() {
  return (
    <Loading label={operatorWords.search.searching}>
      <div className={styles.skeleton}>
        {[1, 2, 3].map((row) => (
          <p key={row}>
            <Bar width={16} />
            <Bar width={24} />
          </p>
        ))}
      </div>
    </Loading>
  );
}
