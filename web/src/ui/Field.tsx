/** Fields of forms, each with its label and hint. */
import { type ComponentProps, type ReactNode, type RefObject, useId } from "react";
import styles from "./Field.module.css";

interface Common {
  label: string;
  hint?: ReactNode;
  value: string;
  onValue: (value: string) => void;
}

export interface TextFieldProps
  extends Common,
    Pick<ComponentProps<"input">, "type" | "autoComplete" | "inputMode"> {
  /** Why the value cannot be sent; the browser shows it and keeps the form. Empty if it can be sent. */
  problem?: string;
  /** How much is used of what is allowed; `over` if it is too much. */
  count?: { said: string; over: boolean };
  rows?: number;
  focus?: RefObject<HTMLElement | null>;
}

/** A text of one line, or of several with `rows`. */
export function TextField({
  label,
  hint,
  value,
  onValue,
  problem = "",
  count,
  rows,
  focus,
  ...rest
}: TextFieldProps) {
  const id = useId();
  const below = hint || count ? `${id}-below` : undefined;
  const take = (node: HTMLInputElement | HTMLTextAreaElement | null) => {
    node?.setCustomValidity(problem);
    if (focus) focus.current = node;
  };
  const control = {
    id,
    ref: take,
    value,
    className: styles.control,
    "aria-describedby": below,
    dir: value ? "auto" : undefined,
  } as const;
  return (
    <div className={styles.field}>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      {rows ? (
        <textarea {...control} rows={rows} onChange={(event) => onValue(event.target.value)} />
      ) : (
        <input {...rest} {...control} onChange={(event) => onValue(event.target.value)} />
      )}
      {below && (
        <p id={below} className={styles.below}>
          {hint && <span>{hint}</span>}
          {count && <span className={`${styles.count} ${count.over ? styles.over : ""}`}>{count.said}</span>}
        </p>
      )}
    </div>
  );
}

export interface SelectFieldProps<T extends string> extends Omit<Common, "onValue"> {
  options: readonly (readonly [T, string])[];
  onValue: (value: T) => void;
}

/** One of a few values. */
export function SelectField<T extends string>(props: SelectFieldProps<T>) {
  const { label, hint, value, onValue, options } = props;
  const id = useId();
  return (
    <div className={styles.field}>
      <label className={styles.label} htmlFor={id}>
        {label}
      </label>
      <select
        id={id}
        className={styles.control}
        value={value}
        aria-describedby={hint ? `${id}-below` : undefined}
        onChange={(event) => onValue(event.target.value as T)}
      >
        {options.map(([option, name]) => (
          <option key={option} value={option}>
            {name}
          </option>
        ))}
      </select>
      {hint && (
        <p id={`${id}-below`} className={styles.below}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** A choice that is on or off. */
export function CheckField(props: {
  label: string;
  hint: string;
  on: boolean;
  onChange: (on: boolean) => void;
}) {
  const id = useId();
  return (
    <div className={styles.check}>
      <input
        id={id}
        type="checkbox"
        checked={props.on}
        aria-describedby={`${id}-below`}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      <label className={styles.label} htmlFor={id}>
        {props.label}
      </label>
      <p id={`${id}-below`} className={styles.below}>
        {props.hint}
      </p>
    </div>
  );
}
