import { Link, useSearchParams } from "wouter";
import { paths } from "../../paths";
import { loginUrl } from "../../session";
import { Message } from "../../shell/Message";
import { buttonClass, LinkButton } from "../../ui/Button";
import { wordFor, words } from "../../words";

const say = words.signInError;
// A link can make this page show only our text for a known code, and a value that has the form of a request id.
const REQUEST_ID = /^[\w-]{1,64}$/;

/** Explains why a sign-in failed. Uses only known codes and a request id from the address. */
export function SignInError() {
  const [query] = useSearchParams();
  const code = query.get("error") ?? "";
  const requestId = query.get("request_id") ?? "";
  const returnTo = query.get("returnTo") ?? paths.account;
  return (
    <Message
      title={say.title}
      lead={say.lead}
      detail={wordFor(say.reasons, code) ?? say.otherwise}
      reference={REQUEST_ID.test(requestId) ? words.reference(requestId) : undefined}
      actions={
        <>
          <LinkButton look="primary" href={loginUrl(returnTo)}>
            {words.retry}
          </LinkButton>
          <Link to={paths.home} className={buttonClass({ look: "quiet" })}>
            {words.home}
          </Link>
        </>
      }
    />
  );
}
