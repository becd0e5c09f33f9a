import { Link } from "wouter";
import { paths } from "../../paths";
import { loginUrl, useSession } from "../../session";
import { isHereOnly } from "../../shell/leaving";
import { Message } from "../../shell/Message";
import { SignOutButton } from "../../shell/SignOutButton";
import { buttonClass, LinkButton } from "../../ui/Button";
import { words } from "../../words";

const say = words.signedOut;

/** The page after signing out. If the person is still signed in, it says so. */
export function SignedOut() {
  const { user } = useSession();
  if (user) {
    return (
      <Message
        open
        title={say.title}
        lead={say.still}
        detail={say.stillDetail}
        actions={
          <>
            <SignOutButton look="primary" />
            <Link to={paths.account} className={buttonClass()}>
              {words.homePage.toAccount}
            </Link>
          </>
        }
      />
    );
  }
  return (
    <Message
      title={say.title}
      lead={say.lead}
      detail={isHereOnly() ? say.hereOnly : say.detail}
      actions={
        <>
          <LinkButton look="primary" href={loginUrl(paths.account)}>
            {say.again}
          </LinkButton>
          <Link to={paths.home} className={buttonClass({ look: "quiet" })}>
            {words.home}
          </Link>
        </>
      }
    />
  );
}
