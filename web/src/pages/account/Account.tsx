import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { currentSessionQuery } from "../../api/queries";
import { paths } from "../../paths";
import { type SessionError, useSession, useSessionStore } from "../../session";
import { Page } from "../../shell/Page";
import { SessionNotices } from "../../shell/SessionNotices";
import { Button, buttonClass } from "../../ui/Button";
import { Notice } from "../../ui/Notice";
import { words } from "../../words";
import styles from "./Account.module.css";
import { Claims } from "./Claims";
import { Profile } from "./Profile";
import { SignInDetails } from "./SignInDetails";

const say = words.account;

/** Shows the signed-in person, the sign-in method and the session's end. */
export function Account() {
  const { user } = useSession();
  const store = useSessionStore();
  const queries = useQueryClient();
  const refresh = useMutation({
    mutationFn: store.refetch,
    // The error may be an outage: the check shows the banner and retries.
    onError: (error: SessionError) => (error.transient ? store.check() : undefined),
    onSettled: () => queries.invalidateQueries({ queryKey: currentSessionQuery.queryKey }),
  });
  if (!user) return null;
  return (
    <Page title={say.title}>
      <div aria-live="polite" className={styles.outcome}>
        <SessionNotices>
          <Link to={paths.sessions} className={buttonClass({ small: true })}>
            {say.toSessions}
          </Link>
        </SessionNotices>
      </div>
      <Profile
        user={user}
        action={
          <Button small busy={refresh.isPending} icon="refresh" onClick={() => refresh.mutate()}>
            {refresh.isPending ? say.refreshing : say.refresh}
          </Button>
        }
      />
      <div aria-live="polite" className={styles.outcome}>
        {refresh.isSuccess && <Notice kind="good" icon="check" title={say.refreshed} />}
        {refresh.isError && (
          <Notice
            kind="danger"
            title={say.refreshFailed}
            detail={say.refreshFailedDetail}
            reference={refresh.error.requestId ? words.reference(refresh.error.requestId) : undefined}
          />
        )}
      </div>
      <SignInDetails />
      <Claims user={user} />
    </Page>
  );
}
