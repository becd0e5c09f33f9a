import { msOf } from "../../api/queries";
import { type Device, type Session, Session_State as State } from "../../gen/session/v1/session_pb";
import { Moment } from "../../shell/Moment";
import { Badge } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Fact, Facts } from "../../ui/Facts";
import { words } from "../../words";
import { deviceName } from "../../words/devices";
import { operatorWords } from "../../words/operator";
import { preciselyAt } from "../../words/times";
import styles from "./Operator.module.css";
import { lastDeviceOf, lastUseOf } from "./person";
import { bindingOf, StateBadge } from "./SessionTable";

const say = operatorWords.session;

export interface SessionCardProps {
  session: Session;
  now: number;
  /** Whether this is the operator's own session. */
  isOwn: boolean;
  end: () => void;
}

/** One session of a person, with the places of its sign-in and of its last use. */
export function SessionCard({ session, now, isOwn, end }: SessionCardProps) {
  const startedMs = msOf(session.createdAt);
  const device = deviceName(lastDeviceOf(session)?.userAgent ?? "");
  const name = session.state === State.UNREADABLE ? say.unreadable : device;
  const label = startedMs === null ? name : words.sessions.label(name, preciselyAt(startedMs));
  return (
    <li className={styles.session}>
      <div className={styles.head}>
        <h3>{name}</h3>
        <span className={styles.badges}>
          {isOwn && <Badge>{say.own}</Badge>}
          <StateBadge session={session} />
        </span>
        <Button small look="danger" aria-label={operatorWords.person.endLabel(label)} onClick={end}>
          {operatorWords.person.end}
        </Button>
      </div>
      <Facts>
        <Fact name={say.signedIn} aside={<Place device={session.createdOn} />}>
          <Moment ms={startedMs} now={now} />
        </Fact>
        {session.state !== State.UNREADABLE && (
          <>
            <Fact name={say.lastUse} aside={<Place device={session.lastSeenOn} />}>
              <Moment ms={lastUseOf(session)} now={now} />
            </Fact>
            <Fact name={say.ends}>
              <Moment ms={msOf(session.absoluteExpiresAt)} now={now} />
            </Fact>
            <Fact name={say.binding}>{bindingOf(session)}</Fact>
          </>
        )}
        <Fact name={say.handle}>
          <code className={styles.code}>{session.handle}</code>
        </Fact>
      </Facts>
    </li>
  );
}

/** The browser and its address; nothing if the session has none. */
function Place({ device }: { device: Device | undefined }) {
  if (!device) return null;
  return (
    <>
      {deviceName(device.userAgent)} {device.address && <bdi>{say.from(device.address)}</bdi>}
    </>
  );
}
