import { AlertDialog } from "@base-ui/react/alert-dialog";
import { type ReactNode, type RefObject, useRef } from "react";
import styles from "./Dialog.module.css";

export interface DialogProps {
  title: string;
  detail: ReactNode;
  /** A form below the detail. */
  children?: ReactNode;
  /** The last one is the main action and takes the focus first. */
  actions: ReactNode;
  /** Takes the focus first instead of the main action. */
  focusFirst?: RefObject<HTMLElement | null>;
  /** Closes on Escape; without it, the dialog stays until it is answered. */
  onClose?: () => void;
  /** Takes the focus after closing; by default the focus returns to where it was. */
  focusAfter?: () => HTMLElement | null;
}

/** The dialog itself with its focus trap; loaded when the first dialog opens. */
export default function DialogParts(props: DialogProps) {
  const { title, detail, children, actions, focusFirst, onClose, focusAfter } = props;
  const buttons = useRef<HTMLDivElement>(null);
  const mainAction = () => buttons.current?.lastElementChild as HTMLElement | null;
  return (
    <AlertDialog.Root open onOpenChange={(open) => !open && onClose?.()}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className={styles.backdrop} />
        <AlertDialog.Popup
          className={styles.popup}
          initialFocus={focusFirst ?? mainAction}
          finalFocus={() => focusAfter?.() ?? true}
        >
          <AlertDialog.Title className={styles.title}>{title}</AlertDialog.Title>
          <AlertDialog.Description className={styles.detail} render={<div />}>
            {detail}
          </AlertDialog.Description>
          {children}
          <div ref={buttons} className={styles.actions}>
            {actions}
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
