import { Button, type Look } from "../ui/Button";
import { words } from "../words";
import { useLeave } from "./leaving";

/** Signs out here and in every other tab, then lets the edge end the session. */
export function SignOutButton(look: Look) {
  const signOut = useLeave();
  return (
    <Button {...look} icon="signOut" onClick={signOut}>
      {words.signOut}
    </Button>
  );
}
