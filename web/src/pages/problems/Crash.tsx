import { paths } from "../../paths";
import { Message } from "../../shell/Message";
import { Button, LinkButton } from "../../ui/Button";
import { words } from "../../words";

/** Replaces a page that crashed. Uses neither session nor router, because they may be broken as well. */
export function Crash() {
  return (
    <Message
      title={words.crash.title}
      lead={words.crash.lead}
      detail={words.crash.detail}
      actions={
        <>
          <Button look="primary" icon="refresh" onClick={() => window.location.reload()}>
            {words.crash.reload}
          </Button>
          <LinkButton look="quiet" href={paths.home}>
            {words.home}
          </LinkButton>
        </>
      }
    />
  );
}
