import { useState } from "react";
import styles from "./Avatar.module.css";

/** At most two initials, from the first and the last word. Counts characters as a reader sees them. */
export function initials(name: string): string {
  const words = name
    .trim()
    .split(/[\s._-]+/u)
    .filter(Boolean);
  const picked = words.length > 1 ? [words[0], words.at(-1)] : words.slice(0, 1);
  const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return picked
    .map(
      (word) =>
        segmenter
          .segment(word ?? "")
          [Symbol.iterator]()
          .next().value?.segment ?? "",
    )
    .join("")
    .toLocaleUpperCase();
}

export interface AvatarProps {
  name: string;
  picture?: string | undefined;
  /** Width in pixels; the height is a sixth more. */
  size: number;
}

/** A person's picture in the doorway, or their initials if the picture is missing or fails to load. Decorative. */
export function Avatar({ name, picture, size }: AvatarProps) {
  const [broken, setBroken] = useState<string | null>(null);
  const shown = picture && isImageUrl(picture) && broken !== picture ? picture : null;
  const box = { width: size, height: Math.round(size * 1.15), fontSize: size * 0.36 };
  return (
    <span className={`${styles.avatar} ${size < 48 ? styles.small : ""}`} style={box} aria-hidden="true">
      {shown ? (
        <img
          src={shown}
          alt=""
          referrerPolicy="no-referrer"
          decoding="async"
          onError={() => setBroken(shown)}
        />
      ) : (
        initials(name)
      )}
    </span>
  );
}

function isImageUrl(picture: string): boolean {
  try {
    const { protocol, origin } = new URL(picture, window.location.href);
    return protocol === "https:" || origin === window.location.origin;
  } catch {
    return false;
  }
}
