import { useEffect, useState } from "react";
import { Button } from "./Button";
import styles from "./visually-hidden.module.css";

// Long enough to read, short enough not to disturb.
const SHOWN_MS = 2_000;

export interface CopyButtonProps {
  text: string;
  label: string;
  copied: string;
  failed: string;
}

/** Copies a text and reports the outcome on the button and to screen readers. */
export function CopyButton({ text, label, copied, failed }: CopyButtonProps) {
  const [outcome, setOutcome] = useState<"none" | "copied" | "failed">("none");
  useEffect(() => {
    if (outcome === "none") return;
    const timer = setTimeout(() => setOutcome("none"), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setOutcome("copied"),
      () => setOutcome("failed"),
    );
  const said = outcome === "copied" ? copied : outcome === "failed" ? failed : "";
  return (
    <>
      <Button small look="quiet" icon={outcome === "copied" ? "check" : "copy"} onClick={() => void copy()}>
        {said || label}
      </Button>
      <span role="status" className={styles.hidden}>
        {said}
      </span>
    </>
  );
}
