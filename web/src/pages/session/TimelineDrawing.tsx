import { Timestamp } from "../../ui/Timestamp";
import { words } from "../../words";
import { exactly, fromNow } from "../../words/times";
import styles from "./ThisSession.module.css";
import type { Timeline } from "./timeline";

const say = words.session;
const WIDTH = 1000;
const LEFT = 14;
const RIGHT = WIDTH - 14;
const x = (at: number) => LEFT + (RIGHT - LEFT) * at;

/** Draws the session from its start to its latest possible end; the list below gives the same facts as text. */
export function TimelineDrawing({ timeline, nowMs }: { timeline: Timeline; nowMs: number }) {
  const idle = timeline.marks.find(({ name }) => name === "idle")?.at ?? 1;
  return (
    <>
      <svg className={styles.line} viewBox={`0 0 ${WIDTH} 72`} preserveAspectRatio="none" aria-hidden="true">
        <path className={styles.possible} d={`M${LEFT} 40H${RIGHT}`} />
        <path className={styles.sure} d={`M${x(timeline.now)} 40H${x(idle)}`} />
        <path className={styles.past} d={`M${LEFT} 40H${x(timeline.now)}`} />
        {timeline.marks.map(({ name, at }) => (
          <path key={name} className={`${styles.mark} ${styles[name]}`} d={`M${x(at)} 26V54`} />
        ))}
        <path className={styles.now} d={`M${x(timeline.now)} 10V62`} />
      </svg>
      <ol className={styles.marks} aria-label={say.timeline}>
        {timeline.marks.map(({ name, ms }) => (
          <li key={name}>
            <span className={`${styles.swatch} ${styles[name]}`} />
            <span>{say[name]}</span>
            <span className={styles.when}>
              <Timestamp ms={ms} said={fromNow(ms, nowMs)} exact={exactly(ms)} />
            </span>
            {name === "bound" && <span className={styles.detail}>{say.boundDetail}</span>}
          </li>
        ))}
      </ol>
    </>
  );
}
