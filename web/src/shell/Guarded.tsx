/** The frame around every page that needs a signed-in person. */
import type { ReactNode } from "react";
import { Redirect } from "wouter";
import { Cause } from "../gen/session/v1/session_pb";
import { paths } from "../paths";
import { RequireSession } from "../session";
import { Button, LinkButton } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { wordFor, words } from "../words";
import { ExpiryWarning } from "./ExpiryWarning";
import { Message } from "./Message";
import { PageSkeleton } from "./PageSkeleton";
import { useWatch } from "./useWatch";

const say = words.ended;

export function Guarded({ children }: { children: ReactNode }) {
  const cause = useWatch();
  return (
    <RequireSession
      loading={<PageSkeleton />}
      failed={(error, retry) => (
        <Message
          title={words.failed.title}
          lead={words.failed.title}
          detail={words.failed.detail}
          reference={error.requestId ? words.reference(error.requestId) : undefined}
          actions={
            <Button look="primary" icon="refresh" onClick={() => void retry()}>
              {words.retry}
            </Button>
          }
        />
      )}
      signedOut={(how, signIn) => {
        if (how === "signed-out") return <Redirect to={paths.signedOut} replace />;
        const stuck = how === "not-signed-in";
        return (
          <>
            <PageSkeleton still />
            <Dialog
              title={stuck ? say.notSignedIn : say.title}
              detail={
                stuck
                  ? say.notSignedInDetail
                  : [wordFor(say.causes, Cause[cause]?.toLowerCase() ?? ""), say.detail]
                      .filter(Boolean)
                      .join(" ")
              }
              actions={
                <>
                  <LinkButton look="quiet" href={paths.home}>
                    {words.home}
                  </LinkButton>
                  <LinkButton look="primary" href={signIn}>
                    {words.signIn}
                  </LinkButton>
                </>
              }
            />
          </>
        );
      }}
    >
      {children}
      <ExpiryWarning />
    </RequireSession>
  );
}
