import { Bar, Loading } from "../../ui/Skeleton";
import { words } from "../../words";
import styles from "./Sessions.module.css";

/** Placeholder of the list while it loads. It has the list's height, so the layout does not shift. */
export function SessionsSkeleton() {
  return (
    <Loading label={words.sessions.loading}>
      <p className={`${styles.head} ${styles.pending}`}>
        <Bar width={26} />
      </p>
      <ul className={styles.list}>
        {[1, 2].map((row) => (
          <li key={row} className={styles.row}>
            <span className={styles.icon} />
            <div className={styles.words}>
              <p className={styles.name}>
                <Bar width={18} />
              </p>
              <p className={styles.line}>
                <Bar width={26} />
              </p>
              <p className={styles.line}>
                <Bar width={30} />
              </p>
            </div>
          </li>
        ))}
      </ul>
    </Loading>
  );
}
