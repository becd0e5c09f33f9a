import styles from "./Skeleton.module.css";

/** A grey bar where text of about `width` characters is going to stand: it keeps the line's height. */
export function Bar({ width }: { width: number }) {
  return <span className={styles.bar} style={{ width: `${width}ch` }} />;
}

/** The shape of an avatar that is not there yet. */
export function ArchSkeleton({ size }: { size: number }) {
  return <span className={`${styles.bar} ${styles.arch}`} style={{ width: size, height: size * 1.15 }} />;
}

/** Says once, to a screen reader, that what stands here is still being loaded. */
export function Loading({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div role="status" aria-label={label}>
      <div aria-hidden="true">{children}</div>
    </div>
  );
}
