import { Icon } from "./Icon";
import styles from "./ThemeSwitch.module.css";
import { chooseTheme, THEMES, type Theme, useTheme } from "./theme";
import hidden from "./visually-hidden.module.css";

const ICONS = { system: "system", light: "sun", dark: "moon" } as const;

export function ThemeSwitch({ label, names }: { label: string; names: Record<Theme, string> }) {
  const chosen = useTheme();
  return (
    <fieldset className={styles.switch}>
      <legend className={hidden.hidden}>{label}</legend>
      {THEMES.map((theme) => (
        <label key={theme} className={styles.choice} title={names[theme]}>
          <input type="radio" name="theme" checked={theme === chosen} onChange={() => chooseTheme(theme)} />
          <Icon name={ICONS[theme]} size={18} />
          <span className={hidden.hidden}>{names[theme]}</span>
        </label>
      ))}
    </fieldset>
  );
}
