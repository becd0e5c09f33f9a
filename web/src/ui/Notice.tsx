import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon";
import styles from "./Notice.module.css";

export interface NoticeProps {
  kind?: "warn" | "danger" | "good";
  icon?: IconName;
  title: string;
  /** Whether the title is a heading. Use it for parts of a page, not for outcomes. */
  heading?: boolean;
  detail?: ReactNode;
  /** The reference to quote in a support request. */
  reference?: string | undefined;
  action?: ReactNode;
}

/** A message with one action. Screen readers announce it politely. */
export function Notice({
  kind = "warn",
  icon = "warning",
  title,
  heading,
  detail,
  reference,
  action,
}: NoticeProps) {
  const Title = heading ? "h2" : "p";
  return (
    <div className={`${styles.notice} ${kind === "warn" ? "" : styles[kind]}`} role="status">
      <span className={styles.icon}>
        <Icon name={icon} />
      </span>
      <div className={styles.body}>
        <div className={styles.words}>
          <Title className={styles.title}>{title}</Title>
          {detail && <p className={styles.detail}>{detail}</p>}
          {reference && <p className={styles.reference}>{reference}</p>}
        </div>
        {action}
      </div>
    </div>
  );
}
