import styles from "./LanguageSwitch.module.css";

export interface LanguageSwitchProps<T extends string> {
  label: string;
  /** The languages by their own names. */
  languages: Readonly<Record<T, string>>;
  current: string;
  choose: (language: T) => void;
}

/** The other languages, each by its own name and read in its own voice. */
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
