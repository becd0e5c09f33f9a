import { Button, type Look } from "../ui/Button";
import { words } from "../words";
import { useLeave } from "./leaving";

/** Signs out in this and every other tab, then the edge ends the session. */
export function SignOutButton(look: Look) {
  const signOut = useLeave();
  return (
    <Button {...look} icon="signOut" onClick={signOut}>
      {words.signOut}
    </Button>
  );
}
