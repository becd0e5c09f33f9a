import styles from "./Icon.module.css";

/** The icons, drawn for this app on a 20 by 20 grid with one stroke. Screen readers ignore them. */

const DRAWINGS = {
  check: "M4.5 10.5l3.5 3.5 7.5-8",
  copy: "M7.5 7.5h8v8h-8zM12.5 4.5h-8v8",
  desktop: "M3 4.5h14v9H3zM7 16.5h6M10 13.5v3",
  phone: "M6.5 2.5h7v15h-7zM9 15h2",
  tablet: "M4.5 2.5h11v15h-11zM9 15h2",
  terminal: "M3 4h14v12H3zM6 8l2.5 2L6 12M10.5 12.5H14",
  lock: "M4.5 9h11v8h-11zM7 9V6a3 3 0 0 1 6 0v3",
  refresh: "M16 10a6 6 0 1 1-1.8-4.3M16.2 2.8v3.4h-3.4",
  signOut: "M8 3.5H4.5v13H8M8.5 10h8M13.5 6.5L17 10l-3.5 3.5",
  arrow: "M4 10h12M11 5l5 5-5 5",
  warning: "M10 3l7.5 13.5h-15zM10 8v4M10 14.2v.1",
  offline:
    "M3 3l14 14M6.4 6.9A8 8 0 0 0 3.5 8.6M9 6a9 9 0 0 1 7.5 2.6M6 11.6a5 5 0 0 1 2.6-1.5M12.6 10.6a5 5 0 0 1 1.4 1M10 15.2v.1",
  sun: "M10 6.8a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4M10 2v1.6M10 16.4V18M2 10h1.6M16.4 10H18M4.4 4.4l1.1 1.1M14.5 14.5l1.1 1.1M15.6 4.4l-1.1 1.1M5.5 14.5l-1.1 1.1",
  moon: "M16.5 11.6A7 7 0 0 1 8.4 3.5a7 7 0 1 0 8.1 8.1z",
  system: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 3v14M12 5h2.6M12 8h4.6M12 12h4.6M12 15h2.6",
  chevron: "M5.5 8l4.5 4.5L14.5 8",
} as const;

export type IconName = keyof typeof DRAWINGS;

// Icons with a direction follow the text direction of the page.
const POINTING: ReadonlySet<IconName> = new Set(["signOut", "arrow", "terminal"]);

export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      className={POINTING.has(name) ? styles.pointing : undefined}
      aria-hidden="true"
      focusable="false"
    >
      <path d={DRAWINGS[name]} />
    </svg>
  );
}
