import styles from "./LanguageSwitch.module.css";

export interface LanguageSwitchProps<T extends string> {
  label: string;
  /** The names of the languages, each in its own language. */
  languages: Readonly<Record<T, string>>;
  current: string;
  choose: (language: T) => void;
}

/** Lists the other languages. Each name is in its own language and marked as such for screen readers. */
export function LanguageSwitch<T extends string>({
  label,
  languages,
  current,
  choose,
}: LanguageSwitchProps<T>) {
  const others = (Object.entries(languages) as [T, string][]).filter(([language]) => language !== current);
  return (
    <ul className={styles.languages} aria-label={label}>
      {others.map(([language, name]) => (
        <li key={language}>
          <button type="button" className={styles.language} lang={language} onClick={() => choose(language)}>
            <bdi>{name}</bdi>
          </button>
        </li>
      ))}
    </ul>
  );
}
