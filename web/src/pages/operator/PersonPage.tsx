import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { currentSessionQuery } from "../../api/queries";
import { useServerNow } from "../../clock";
import { type Session, Session_State as State } from "../../gen/session/v1/session_pb";
import { Button } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { Fact, Facts } from "../../ui/Facts";
import { Notice } from "../../ui/Notice";
import { emailOf } from "../../user";
import { inDigits, operatorWords } from "../../words/operator";
import { EndDialog } from "./EndDialog";
import { Endings } from "./Endings";
import { Frame } from "./Frame";
import { issuerOf, ofPerson, type Search } from "./filter";
import styles from "./Operator.module.css";
import { claimsOf, otherClaimsOf, type Props, personOf, providerName } from "./person";
import { foundOf, foundQuery } from "./queries";
import { SessionCard } from "./SessionCard";
import { TableSkeleton } from "./SessionTable";
import { Trouble } from "./Trouble";

const say = operatorWords.person;
const TICK_MS = 10_000;

/** One person at a provider: the sessions, what the provider says, and the recent endings. */
export function PersonPage({ providers, operator }: Props) {
  const [params] = useSearchParams();
  const issuer = issuerOf(
    params,
    providers.map((provider) => provider.issuer),
  );
  const subject = params.get("subject") ?? "";
  return (
    <Frame title={say.title} subject={operator}>
      {(purpose) =>
        issuer && subject ? (
          <Person key={`${issuer} ${subject}`} {...{ purpose, issuer, subject, providers }} />
        ) : (
          <Notice title={say.missing} />
        )
      }
    </Frame>
  );
}

interface PersonProps extends Pick<Props, "providers"> {
  purpose: string;
  issuer: string;
  subject: string;
}

function Person({ purpose, issuer, subject, providers }: PersonProps) {
  const search = ofPerson(issuer, subject);
  const query = useInfiniteQuery(foundQuery(purpose, search));
  const { data, error, hasNextPage } = query;
  const found = data ? foundOf(data) : { sessions: [], skewMs: 0 };
  const now = useServerNow(found.skewMs, TICK_MS);
  const own = useQuery({ ...currentSessionQuery, enabled: false }).data?.session.handle;
  const [asking, setAsking] = useState<{ search: Search; found: readonly Session[] } | null>(null);
  const [outcome, setOutcome] = useState("");
  const outcomeBox = useRef<HTMLDivElement>(null);
  const known = found.sessions.find(({ state }) => state !== State.UNREADABLE);
  const name = known ? personOf(known).name : subject;
  const count = found.sessions.length;
  return (
    <>
      <div ref={outcomeBox} tabIndex={-1} aria-live="polite" className={styles.outcome}>
        {outcome && <Notice kind="good" icon="check" title={outcome} />}
      </div>
      <Identity {...{ name, subject }} session={known} provider={providerName(providers, issuer)} />
      <Card
        title={say.sessions}
        action={
          count > 0 && (
            <Button small look="danger" onClick={() => setAsking({ search, found: found.sessions })}>
              {say.endAll}
            </Button>
          )
        }
      >
        {error && <Trouble title={say.failed} error={error} busy={query.isFetching} retry={query.refetch} />}
        {!data && !error && <TableSkeleton />}
        {data && (
          <p role="status" className={styles.muted}>
            {count === 0 && !hasNextPage
              ? say.none
              : operatorWords.search.found(inDigits(count), count === 1)}
          </p>
        )}
        <ul>
          {found.sessions.map((session) => (
            <SessionCard
              key={session.handle}
              session={session}
              now={now}
              isOwn={session.handle === own}
              end={() =>
                setAsking({ search: { ...search, kind: "handle", value: session.handle }, found: [session] })
              }
            />
          ))}
        </ul>
        {hasNextPage && (
          <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            {operatorWords.search.more}
          </Button>
        )}
      </Card>
      <Endings {...{ purpose, issuer, subject }} now={now} />
      {asking && (
        <EndDialog
          purpose={purpose}
          search={asking.search}
          found={asking.found}
          hasMore={asking.search.kind === "subject" && hasNextPage}
          title={
            asking.search.kind === "subject"
              ? operatorWords.ending.askPerson(name)
              : operatorWords.ending.askOne
          }
          onClose={(ended) => {
            setAsking(null);
            if (!ended) return;
            setOutcome(ended);
            void query.refetch();
          }}
          outcomeBox={outcomeBox}
        />
      )}
    </>
  );
}

function Identity(props: { name: string; subject: string; session: Session | undefined; provider: string }) {
  const { name, subject, session, provider } = props;
  const email = session && emailOf(claimsOf(session));
  return (
    <Card title={name}>
      <Facts>
        {email && (
          <Fact name={operatorWords.search.kinds.email}>
            <bdi>{email}</bdi>
          </Fact>
        )}
        <Fact name={say.subject}>
          <bdi>{subject}</bdi>
        </Fact>
        <Fact name={operatorWords.provider}>
          <bdi>{provider}</bdi>
        </Fact>
        {session &&
          otherClaimsOf(session).map(([claim, value]) => (
            <Fact key={claim} name={claim}>
              <bdi>{value}</bdi>
            </Fact>
          ))}
      </Facts>
    </Card>
  );
}
