import styles from "./Doorway.module.css";

/** The product's picture: an arched door, open if the person is signed in. Decorative. */
export function Doorway({ open }: { open: boolean }) {
  return (
    <svg viewBox="0 0 200 240" className={`${styles.doorway} ${open ? styles.open : ""}`} aria-hidden="true">
      <path d="M38 224V104a62 62 0 0 1 124 0v120z" fill="var(--accent-soft)" />
      <path d="M50 224V106a50 50 0 0 1 100 0v118z" fill={open ? "var(--glow)" : "var(--accent)"} />
      {open && <path className={styles.light} d="M62 224h76l40 16H22z" fill="var(--glow)" opacity="0.35" />}
      <g className={styles.leaf}>
        <path
          d="M62 224V108a38 38 0 0 1 76 0v116z"
          fill="var(--accent)"
          stroke="var(--accent-soft)"
          strokeWidth="2"
        />
        <circle cx="128" cy="164" r="4.5" fill="var(--glow)" />
      </g>
      <path d="M18 224h164" stroke="var(--line-strong)" strokeWidth="3" strokeLinecap="round" />
      <path
        d="M30 224V104a70 70 0 0 1 140 0v120"
        fill="none"
        stroke="var(--line-strong)"
        strokeWidth="3"
        strokeLinecap="round"
      />
    </svg>
  );
}
