import { ArchSkeleton, Bar, Loading } from "../ui/Skeleton";
import hidden from "../ui/visually-hidden.module.css";
import { words } from "../words";
import styles from "./PageSkeleton.module.css";

/** Placeholder of a page that is loading; `still` if the page will not load. */
export function PageSkeleton({ still = false }: { still?: boolean }) {
  const shapes = (
    <div className={still ? styles.still : undefined}>
      <p className={styles.heading}>
        <Bar width={9} />
      </p>
      <div className={styles.card}>
        <ArchSkeleton size={96} />
        <div className={styles.lines}>
          <Bar width={18} />
          <Bar width={24} />
        </div>
      </div>
    </div>
  );
  const body = still ? (
    <div aria-hidden="true">{shapes}</div>
  ) : (
    <Loading label={words.account.loading}>{shapes}</Loading>
  );
  return (
    <>
      <title>{words.title(words.nav.label)}</title>
      <h1 className={hidden.hidden}>{words.nav.label}</h1>
      {body}
    </>
  );
}
