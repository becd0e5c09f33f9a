import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { type CurrentSession, currentSessionQuery, msOf } from "../../api/queries";
import { useServerNow } from "../../clock";
import { Session_State as State } from "../../gen/session/v1/session_pb";
import { paths } from "../../paths";
import { here, loginUrl } from "../../session";
import { Failure } from "../../shell/Failure";
import { Moment } from "../../shell/Moment";
import { LinkButton } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { Fact, Facts } from "../../ui/Facts";
import { Notice } from "../../ui/Notice";
import { Bar, Loading } from "../../ui/Skeleton";
import { words } from "../../words";
import { deviceName } from "../../words/devices";

const say = words.account;
// Relative times show minutes and hours: more frequent updates would only use battery.
const TICK_MS = 10_000;

/** How and when the person signed in, on which device, and when the session ends. The session service supplies it. */
export function SignInDetails() {
  const { data, error, refetch, isFetching } = useQuery(currentSessionQuery);
  return (
    <Card title={say.signInDetails} action={<Link to={paths.sessions}>{say.toSessions}</Link>}>
      {data ? (
        <Details {...data} />
      ) : error ? (
        <Failure title={say.failed} error={error} busy={isFetching} retry={refetch} />
      ) : (
        <Placeholder />
      )}
    </Card>
  );
}

function Details({ session, skewMs, providerName }: CurrentSession) {
  const now = useServerNow(skewMs, TICK_MS);
  const device = session.lastSeenOn ?? session.createdOn;
  return (
    <>
      {session.state === State.NEEDS_SIGN_IN && (
        <Notice
          title={say.needsSignIn}
          action={
            <LinkButton small href={loginUrl(here())}>
              {say.signInAgain}
            </LinkButton>
          }
        />
      )}
      <Facts>
        <Fact name={say.provider}>
          <bdi>{providerName || say.yourProvider}</bdi>
        </Fact>
        <Fact name={say.signedIn}>
          {/* Many providers send no time of authentication: then this shows the start of the session. */}
          <Moment ms={msOf(session.authenticatedAt ?? session.createdAt)} now={now} />
        </Fact>
        <Fact name={say.thisDevice} aside={device?.address && <bdi>{device.address}</bdi>}>
          {deviceName(device?.userAgent ?? "")}
        </Fact>
        <Fact name={say.expires}>
          <Moment ms={msOf(session.expiresAt)} now={now} />
        </Fact>
        <Fact name={say.ends}>
          <Moment ms={msOf(session.absoluteExpiresAt)} now={now} />
        </Fact>
      </Facts>
    </>
  );
}

function Placeholder() {
  return (
    <Loading label={say.loading}>
      <Facts>
        {[say.provider, say.signedIn, say.thisDevice, say.expires, say.ends].map((name) => (
          <Fact key={name} name={name} aside={name === say.provider ? undefined : <Bar width={20} />}>
            <Bar width={14} />
          </Fact>
        ))}
      </Facts>
    </Loading>
  );
}
