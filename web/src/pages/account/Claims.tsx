import { useId, useState } from "react";
import type { User } from "../../session";
import { Button } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { CopyButton } from "../../ui/CopyButton";
import { words } from "../../words";
import styles from "./Account.module.css";

const say = words.account;

/** The unchanged claims, to read or to copy. */
export function Claims({ user }: { user: User }) {
  const [shown, setShown] = useState(false);
  const id = useId();
  const text = JSON.stringify(user, null, 2);
  return (
    <Card
      title={say.claims}
      action={
        <span className={styles.buttons}>
          {shown && <CopyButton text={text} label={say.copy} copied={say.copied} failed={say.copyFailed} />}
          <Button small aria-expanded={shown} aria-controls={id} onClick={() => setShown(!shown)}>
            {shown ? say.claimsHide : say.claimsShow}
          </Button>
        </span>
      }
    >
      <p className={styles.note}>{say.claimsNote}</p>
      {/* This region scrolls, so it must be reachable by keyboard. */}
      <div id={id} hidden={!shown}>
        {shown && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: keys scroll a region only while it has the focus
          <pre className={styles.claims} tabIndex={0} dir="ltr">
            {text}
          </pre>
        )}
      </div>
    </Card>
  );
}
