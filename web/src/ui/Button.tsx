import type { ComponentProps, KeyboardEvent, ReactNode } from "react";
import styles from "./Button.module.css";
import { Icon, type IconName } from "./Icon";

export interface Look {
  look?: "primary" | "secondary" | "quiet" | "danger";
  small?: boolean;
}

/** The class of a button, for links that look like buttons. */
export function buttonClass({ look = "secondary", small }: Look = {}): string {
  return [styles.button, styles[look], small && styles.small].filter(Boolean).join(" ");
}

export interface ButtonProps extends Look, Omit<ComponentProps<"button">, "className" | "disabled"> {
  icon?: IconName;
  /** Busy: stays focusable, informs assistive technology, and ignores presses. */
  busy?: boolean;
  children: ReactNode;
}

/** A held key counts as one press: the dialog it opens must not take the repeats as an answer. */
function ignoreRepeats(event: KeyboardEvent): void {
  if (event.repeat && event.key === "Enter") event.preventDefault();
}

export function Button({ look, small, icon, busy = false, children, onClick, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={buttonClass({ ...(look && { look }), ...(small && { small }) })}
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      onClick={busy ? undefined : onClick}
      onKeyDown={ignoreRepeats}
    >
      {icon && <Icon name={icon} size={small ? 18 : 20} />}
      {children}
    </button>
  );
}

/** A link to a page outside the app's router (the sign-in and sign-out routes) that looks like a button. */
export function LinkButton({
  look,
  small,
  icon,
  children,
  ...rest
}: Look & ComponentProps<"a"> & { icon?: IconName }) {
  return (
    <a {...rest} className={buttonClass({ ...(look && { look }), ...(small && { small }) })}>
      {icon && <Icon name={icon} size={small ? 18 : 20} />}
      {children}
    </a>
  );
}
