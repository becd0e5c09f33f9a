import { useQuery } from "@tanstack/react-query";
import type { Ending } from "../../api/operator";
import { msOf } from "../../api/queries";
import { INVALID_ARGUMENT, RpcFailure } from "../../api/rpc-error";
import { Moment } from "../../shell/Moment";
import { Card } from "../../ui/Card";
import { deviceName } from "../../words/devices";
import { operatorWords } from "../../words/operator";
import styles from "./Operator.module.css";
import { causeInWords } from "./person";
import { endingsQuery } from "./queries";
import { TableSkeleton } from "./SessionTable";
import { Trouble } from "./Trouble";

const say = operatorWords.person;

export interface EndingsProps {
  purpose: string;
  issuer: string;
  subject: string;
  now: number;
}

/** Why a person's sessions ended in the last 30 days. */
export function Endings({ purpose, issuer, subject, now }: EndingsProps) {
  const { data, error, isFetching, refetch } = useQuery(endingsQuery(purpose, issuer, subject));
  const isOff = error instanceof RpcFailure && error.code === INVALID_ARGUMENT;
  return (
    <Card title={say.endings}>
      <p className={styles.muted}>
        {isOff ? say.endingsOff : data?.length === 0 ? say.endingsNone : say.endingsNote}
      </p>
      {error && !isOff && (
        <Trouble title={say.endingsFailed} error={error} busy={isFetching} retry={refetch} />
      )}
      {!data && !error && <TableSkeleton />}
      <ul>
        {data?.map((ending) => (
          <Row key={ending.handle} ending={ending} now={now} />
        ))}
      </ul>
    </Card>
  );
}

function Row({ ending, now }: { ending: Ending; now: number }) {
  return (
    <li className={styles.ending}>
      <div>
        <p>{causeInWords(ending.cause)}</p>
        {ending.operator && (
          <p className={styles.muted}>
            <bdi>{say.by(ending.operator)}</bdi>
          </p>
        )}
        {ending.purpose && (
          <p className={styles.muted}>
            <bdi>{ending.purpose}</bdi>
          </p>
        )}
        {ending.lastSeenOn && (
          <p className={styles.muted}>
            {deviceName(ending.lastSeenOn.userAgent)} <bdi>{ending.lastSeenOn.address}</bdi>
          </p>
        )}
      </div>
      <Moment ms={msOf(ending.at)} now={now} />
    </li>
  );
}
