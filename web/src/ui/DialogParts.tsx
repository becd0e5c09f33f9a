import { AlertDialog } from "@base-ui/react/alert-dialog";
import type { ReactNode, RefObject } from "react";
import styles from "./Dialog.module.css";

export interface DialogProps {
  title: string;
  detail: ReactNode;
  actions: ReactNode;
  /** Closes on Escape; left out, the dialog stays until it is answered. */
  onClose?: () => void;
  /** What gets the focus first; left out, the first control. */
  initialFocus?: RefObject<HTMLElement | null>;
}

/** The dialog itself, with the focus trap: loaded when the first dialog opens. */
export default function DialogParts({ title, detail, actions, onClose, initialFocus }: DialogProps) {
  return (
    <AlertDialog.Root open onOpenChange={(open) => !open && onClose?.()}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className={styles.backdrop} />
        <AlertDialog.Popup className={styles.popup} {...(initialFocus && { initialFocus })}>
          <AlertDialog.Title className={styles.title}>{title}</AlertDialog.Title>
          <AlertDialog.Description className={styles.detail} render={<div />}>
            {detail}
          </AlertDialog.Description>
          <div className={styles.actions}>{actions}</div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
