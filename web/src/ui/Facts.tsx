import type { ReactNode } from "react";
import styles from "./Facts.module.css";

/** A list of names and values. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className={styles.facts}>{children}</dl>;
}

export function Fact({ name, children, aside }: { name: string; children: ReactNode; aside?: ReactNode }) {
  return (
    <div className={styles.fact}>
      <dt>{name}</dt>
      <dd>
        {children}
        {aside && <span className={styles.aside}>{aside}</span>}
      </dd>
    </div>
  );
}
