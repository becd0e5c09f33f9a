import { type ReactNode, useEffect, useRef } from "react";
import { Doorway } from "../ui/Doorway";
import { words } from "../words";
import styles from "./Message.module.css";

export interface MessageProps {
  title: string;
  lead: string;
  detail?: ReactNode;
  reference?: string | undefined;
  actions: ReactNode;
  /** Whether the door is drawn open: the person is signed in. */
  open?: boolean;
}

/** A page with one message and one next step. */
export function Message({ title, lead, detail, reference, actions, open = false }: MessageProps) {
  const ref = useRef<HTMLHeadingElement>(null);
  useEffect(() => ref.current?.focus({ preventScroll: true }), []);
  return (
    <div className={styles.message}>
      <title>{words.title(title)}</title>
      <div className={styles.words}>
        <h1 ref={ref} tabIndex={-1} className={styles.heading}>
          {lead}
        </h1>
        {detail && <div className={styles.detail}>{detail}</div>}
        {reference && <p className={styles.reference}>{reference}</p>}
        <div className={styles.actions}>{actions}</div>
      </div>
      <div className={styles.picture}>
        <Doorway open={open} />
      </div>
    </div>
  );
}
