import { type ReactNode, useEffect, useRef } from "react";
import { msOf } from "../../api/queries";
import { describeDevice } from "../../device";
import { type Session, Session_State as State } from "../../gen/session/v1/session_pb";
import { Badge } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Icon } from "../../ui/Icon";
import { Timestamp } from "../../ui/Timestamp";
import { words } from "../../words";
import { exactly, fromNow } from "../../words/times";
import { deviceOf, type Facts, nameOf, ownFacts } from "./facts";
import { lastSeenMs } from "./queries";
import styles from "./Sessions.module.css";

const say = words.sessions;

export interface SessionRowProps {
  session: Session;
  /** The facts that all sessions share: the list shows them once and the row leaves them out. */
  shared: Facts;
  /** The accessible name of this session; unique in the list. */
  label: string;
  now: number;
  busy: boolean;
  onEnd: () => void;
  /** Why ending it failed. */
  failure?: ReactNode;
}

/** One session: its device, where and when it was last used, and a button to end it. */
export function SessionRow({ session, shared, label, now, busy, onEnd, failure }: SessionRowProps) {
  const unreadable = session.state === State.UNREADABLE;
  const seen = unreadable ? 0 : lastSeenMs(session);
  const created = msOf(session.createdAt);
  const expires = msOf(session.expiresAt);
  const { device, address } = ownFacts(session, shared);
  const started = created !== null && (
    <span>
      {say.started} <Timestamp ms={created} said={fromNow(created, now)} exact={exactly(created)} />
    </span>
  );
  return (
    <li className={styles.row}>
      <span className={styles.icon}>
        <Icon name={describeDevice(deviceOf(session)?.userAgent ?? "")?.kind ?? "desktop"} size={24} />
      </span>
      <div className={styles.words}>
        <h2 className={styles.name}>
          {device || started || nameOf(session)}
          {session.current && <Badge>{say.current}</Badge>}
          {session.deviceBinding && (
            <Badge quiet icon="lock">
              {session.current ? say.boundHere : say.boundElsewhere}
            </Badge>
          )}
        </h2>
        {unreadable && <p className={styles.line}>{say.unreadableDetail}</p>}
        <p className={styles.line}>
          {address && <bdi>{address}</bdi>}
          {seen > 0 && (
            <Timestamp ms={seen} said={say.lastActive(fromNow(seen, now))} exact={exactly(seen)} />
          )}
        </p>
        <p className={styles.line}>
          {device && started}
          {expires !== null && (
            <span>
              {say.expires} <Timestamp ms={expires} said={fromNow(expires, now)} exact={exactly(expires)} />
            </span>
          )}
        </p>
      </div>
      <Button small busy={busy} aria-label={busy ? undefined : say.endLabel(label)} onClick={onEnd}>
        {busy ? say.ending : say.end}
      </Button>
      {failure && <div className={styles.failure}>{failure}</div>}
    </li>
  );
}

/**
 * Replaces the row of a session that was ended here. The outcome appears where the person is looking, and it takes
 * the focus, because the focused button is gone.
 */
export function EndedRow({ session }: { session: Session }) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (document.activeElement === document.body) row.current?.focus();
  }, []);
  return (
    <li ref={row} tabIndex={-1} className={styles.row}>
      <span className={styles.icon}>
        <Icon name="check" size={24} />
      </span>
      <p role="status" className={styles.words}>
        {say.ended(nameOf(session))}
      </p>
    </li>
  );
}
