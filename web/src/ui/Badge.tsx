import styles from "./Badge.module.css";
import { Icon, type IconName } from "./Icon";

export interface BadgeProps {
  icon?: IconName;
  /** For less prominent badges. */
  quiet?: boolean;
  children: string;
}

/** A short status label next to a name. */
export function Badge({ icon, quiet = false, children }: BadgeProps) {
  return (
    <span className={quiet ? `${styles.badge} ${styles.quiet}` : styles.badge}>
      {icon && <Icon name={icon} size={14} />}
      {children}
    </span>
  );
}
