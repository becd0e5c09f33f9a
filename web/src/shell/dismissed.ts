import { useState } from "react";

/** Which event a person has dismissed the notice of, by its time: a time reveals nothing about the person. */
export function useDismissed(key: string): [dismissedAt: number, dismiss: (at: number) => void] {
  const [dismissed, setDismissed] = useState(() => remembered(key));
  const dismiss = (at: number) => {
    remember(key, at);
    setDismissed(at);
    // Dismissing removes the button; the focus must not get lost.
    document.querySelector("h1")?.focus({ preventScroll: true });
  };
  return [dismissed, dismiss];
}

function remembered(key: string): number {
  try {
    return Number(localStorage.getItem(key));
  } catch {
    return 0;
  }
}

function remember(key: string, at: number): void {
  try {
    localStorage.setItem(key, String(at));
  } catch {
    // Without storage the notice returns on the next page.
  }
}
