import { Link } from "wouter";
import { paths } from "../../paths";
import { Message } from "../../shell/Message";
import { buttonClass } from "../../ui/Button";
import { words } from "../../words";

export function NotFound() {
  return (
    <Message
      title={words.notFound.title}
      lead={words.notFound.lead}
      detail={words.notFound.detail}
      actions={
        <Link to={paths.home} className={buttonClass({ look: "primary" })}>
          {words.home}
        </Link>
      }
    />
  );
}
