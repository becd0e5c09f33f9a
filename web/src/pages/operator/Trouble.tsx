/** What the operator reads if the service does not answer: as a whole page, or in place of a part of one. */
import { Link } from "wouter";
import { RpcFailure } from "../../api/rpc-error";
import { paths } from "../../paths";
import { here, loginUrl } from "../../session";
import { Failure } from "../../shell/Failure";
import { Message } from "../../shell/Message";
import { Button, buttonClass, LinkButton } from "../../ui/Button";
import { Notice } from "../../ui/Notice";
import { words } from "../../words";
import { operatorWords } from "../../words/operator";
import { type Refusal, refusalOf } from "./queries";

interface TroubleProps {
  error: Error;
  busy?: boolean;
  retry?: () => unknown;
}

const referenceOf = (error: Error) =>
  error instanceof RpcFailure && error.requestId ? words.reference(error.requestId) : undefined;

// What a sign-in may have to satisfy. The edge names it with the refusal, in the words of its login route.
const DEMANDS = ["max_age", "acr_values", "connection"];

/** The sign-in that satisfies the rule for operators and returns to this page. */
export function signInUrl(error: Error): string {
  const named = error instanceof RpcFailure ? error.metadata : {};
  const demands = DEMANDS.flatMap((name) => (named[name] ? [[name, named[name]]] : []));
  return [loginUrl(here()), new URLSearchParams(demands).toString()].filter(Boolean).join("&");
}

function Way({ refusal, error, small }: { refusal: Refusal; error: Error; small?: boolean }) {
  const look = { look: "primary", small: small ?? false } as const;
  if (refusal === "again")
    return (
      <LinkButton {...look} href={signInUrl(error)}>
        {operatorWords.again.action}
      </LinkButton>
    );
  return (
    <Link to={paths.account} className={buttonClass(look)}>
      {operatorWords.denied.back}
    </Link>
  );
}

/** The page of a person whom the service does not serve, or cannot serve now. */
export function TroublePage({ error, busy = false, retry }: TroubleProps) {
  const refusal = refusalOf(error);
  const say = refusal && operatorWords[refusal];
  return (
    <Message
      title={say?.title ?? words.nav.operator}
      lead={say?.lead ?? operatorWords.failed}
      detail={say?.detail ?? words.failed.detail}
      reference={referenceOf(error)}
      actions={
        refusal ? (
          <Way refusal={refusal} error={error} />
        ) : (
          <Button look="primary" icon="refresh" busy={busy} onClick={() => void retry?.()}>
            {busy ? words.retrying : words.retry}
          </Button>
        )
      }
    />
  );
}

/** The same in place of a part of a page. */
export function Trouble({
  title,
  detail,
  ...props
}: TroubleProps & { title: string; detail?: string | undefined }) {
  const refusal = refusalOf(props.error);
  if (!refusal) return <Failure title={title} {...(detail && { detail })} {...props} />;
  const say = operatorWords[refusal];
  return (
    <Notice
      kind="danger"
      title={say.lead}
      detail={say.detail}
      reference={referenceOf(props.error)}
      action={<Way refusal={refusal} error={props.error} small />}
    />
  );
}
