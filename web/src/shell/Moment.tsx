import { Timestamp } from "../ui/Timestamp";
import { briefly, exactly, fromNow } from "../words/times";
import styles from "./Moment.module.css";

/** A time relative to now, next to its date. */
export function Moment({ ms, now }: { ms: number | null; now: number }) {
  if (ms === null) return "–";
  return (
    <span className={styles.moment}>
      <Timestamp ms={ms} said={fromNow(ms, now)} exact={exactly(ms)} />
      <span className={styles.date}>{briefly(ms)}</span>
    </span>
  );
}
