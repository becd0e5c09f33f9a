import { LOGOUT_PATH, useSessionStore } from "../session";
import { Button, type Look } from "../ui/Button";
import { words } from "../words";

/** Signs out here and in every other tab, then lets the edge end the session. */
export function SignOutButton(look: Look) {
  const signOut = useSignOut();
  return (
    <Button {...look} icon="signOut" onClick={signOut}>
      {words.signOut}
    </Button>
  );
}

/** What signing out does, for other things to press. */
export function useSignOut(): () => void {
  const store = useSessionStore();
  return () => {
    store.signingOut();
    window.location.assign(LOGOUT_PATH);
  };
}
