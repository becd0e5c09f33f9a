import { lazy, Suspense } from "react";
import type { DialogProps } from "./DialogParts";

const DialogParts = lazy(() => import("./DialogParts"));

/** A question that must be answered. It is open while it is rendered. */
export function Dialog(props: DialogProps) {
  return (
    <Suspense fallback={null}>
      <DialogParts {...props} />
    </Suspense>
  );
}
