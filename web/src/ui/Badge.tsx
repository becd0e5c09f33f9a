import styles from "./Badge.module.css";
import { Icon, type IconName } from "./Icon";

export interface BadgeProps {
  icon?: IconName;
  /** For what should not catch the eye first. */
  quiet?: boolean;
  children: string;
}

/** A few words that say how something is, beside its name. */
export function Badge({ icon, quiet = false, children }: BadgeProps) {
  return (
    <span className={quiet ? `${styles.badge} ${styles.quiet}` : styles.badge}>
      {icon && <Icon name={icon} size={14} />}
      {children}
    </span>
  );
}
