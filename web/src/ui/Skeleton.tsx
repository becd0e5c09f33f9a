import styles from "./Skeleton.module.css";

/** A grey bar in place of text of about `width` characters; it keeps the line's height. */
export function Bar({ width }: { width: number }) {
  return <span className={styles.bar} style={{ width: `${width}ch` }} />;
}

/** Placeholder of an avatar. */
export function ArchSkeleton({ size }: { size: number }) {
  return <span className={`${styles.bar} ${styles.arch}`} style={{ width: size, height: size * 1.15 }} />;
}

/** Announces once to screen readers that this part is loading. */
export function Loading({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div role="status" aria-label={label}>
      <div aria-hidden="true">{children}</div>
    </div>
  );
}
