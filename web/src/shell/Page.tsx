import { type ReactNode, useEffect, useRef } from "react";
import { words } from "../words";
import styles from "./Page.module.css";

let arrived = false;

export interface PageProps {
  /** The document's title. */
  title: string;
  heading?: ReactNode;
  lead?: ReactNode;
  children: ReactNode;
}

/** A page with title and heading. The heading takes the focus when the person comes from another page. */
export function Page({ title, heading, lead, children }: PageProps) {
  const ref = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // On the first load the browser's default focus is right.
    if (arrived) ref.current?.focus({ preventScroll: true });
    arrived = true;
  }, []);
  return (
    <div className={styles.page}>
      <title>{words.title(title)}</title>
      <div className={styles.head}>
        <h1 ref={ref} tabIndex={-1} className={styles.heading}>
          {heading ?? title}
        </h1>
        {lead && <p className={styles.lead}>{lead}</p>}
      </div>
      {children}
    </div>
  );
}
