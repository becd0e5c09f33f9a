import { Link } from "wouter";
import { paths } from "../../paths";
import { loginUrl, useSession } from "../../session";
import { Message } from "../../shell/Message";
import { Button, buttonClass, LinkButton } from "../../ui/Button";
import { Bar, Loading } from "../../ui/Skeleton";
import { displayName } from "../../user";
import { words } from "../../words";
import styles from "./Home.module.css";

const say = words.homePage;

export function Home() {
  const { user, isLoading, error, checkSession } = useSession();
  if (user) {
    return (
      <Message
        open
        title={say.title}
        lead={say.greeting(displayName(user))}
        detail={say.signedIn}
        actions={
          <Link to={paths.account} className={buttonClass({ look: "primary" })}>
            {say.toAccount}
          </Link>
        }
      />
    );
  }
  const action = isLoading ? (
    <Loading label={say.checking}>
      <span className={styles.pending}>
        <Bar width={9} />
      </span>
    </Loading>
  ) : error?.transient ? null : error ? ( // the banner reports an outage and retries
    <>
      <p className={styles.unknown}>{say.unknown}</p>
      <Button look="primary" icon="refresh" onClick={() => void checkSession()}>
        {words.retry}
      </Button>
    </>
  ) : (
    <LinkButton look="primary" href={loginUrl(paths.account)}>
      {words.signIn}
    </LinkButton>
  );
  return (
    <>
      <Message title={say.title} lead={say.lead} detail={say.what} actions={action} />
      <ul className={styles.points}>
        {say.points.map(({ title, detail }) => (
          <li key={title}>
            <h2>{title}</h2>
            <p>{detail}</p>
          </li>
        ))}
      </ul>
    </>
  );
}
