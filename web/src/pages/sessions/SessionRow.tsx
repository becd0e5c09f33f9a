import { msOf } from "../../api/queries";
import { describeDevice } from "../../device";
import { type Session, Session_State as State } from "../../gen/session/v1/session_pb";
import { Badge } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Bar, Loading } from "../../ui/Skeleton";
import { Timestamp } from "../../ui/Timestamp";
import { words } from "../../words";
import { exactly, fromNow } from "../../words/times";
import { lastSeenMs } from "./queries";
import styles from "./Sessions.module.css";

const say = words.sessions;

export interface SessionRowProps {
  session: Session;
  name: string;
  now: number;
  busy: boolean;
  onEnd: () => void;
}

/** One session: what it runs on, where and when it was last used, and how to end it. */
export function SessionRow({ session, name, now, busy, onEnd }: SessionRowProps) {
  const device = session.lastSeenOn ?? session.createdOn;
  const unreadable = session.state === State.UNREADABLE;
  const seen = unreadable ? 0 : lastSeenMs(session);
  const created = msOf(session.createdAt);
  const expires = msOf(session.expiresAt);
  return (
    <li className={styles.row}>
      <span className={styles.icon}>
        <Icon name={describeDevice(device?.userAgent ?? "")?.kind ?? "desktop"} size={24} />
      </span>
      <div className={styles.words}>
        <h2 className={styles.name}>
          {name}
          {session.current && <Badge>{say.current}</Badge>}
          {session.deviceBinding && (
            <Badge quiet icon="lock">
              {session.current ? say.boundHere : say.boundElsewhere}
            </Badge>
          )}
        </h2>
        {unreadable && <p className={styles.line}>{say.unreadableDetail}</p>}
        <p className={styles.line}>
          {device?.address && <bdi>{device.address}</bdi>}
          {seen > 0 && (
            <Timestamp ms={seen} said={say.lastActive(fromNow(seen, now))} exact={exactly(seen)} />
          )}
        </p>
        <p className={styles.line}>
          {created !== null && (
            <span>
              {say.started} <Timestamp ms={created} said={fromNow(created, now)} exact={exactly(created)} />
            </span>
          )}
          {expires !== null && (
            <span>
              {say.expires} <Timestamp ms={expires} said={fromNow(expires, now)} exact={exactly(expires)} />
            </span>
          )}
        </p>
      </div>
      <Button small busy={busy} aria-label={busy ? undefined : say.endLabel(name)} onClick={onEnd}>
        {busy ? say.ending : say.end}
      </Button>
    </li>
  );
}

export function SessionRowSkeleton() {
  return (
    <Loading label={say.loading}>
      <ul className={styles.list}>
        {[1, 2].map((row) => (
          <li key={row} className={styles.row}>
            <span className={styles.icon} />
            <div className={styles.words}>
              <p className={styles.name}>
                <Bar width={18} />
              </p>
              <p className={styles.line}>
                <Bar width={26} />
              </p>
              <p className={styles.line}>
                <Bar width={30} />
              </p>
            </div>
          </li>
        ))}
      </ul>
    </Loading>
  );
}
