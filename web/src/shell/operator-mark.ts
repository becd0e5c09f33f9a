/**
 * Remembers in this tab that the person may use the operators' pages, because the edge has answered such a call. The
 * navigation then links to them, and nothing is requested for other people. The edge decides again on every call.
 */
import { useSyncExternalStore } from "react";

const KEY = "operator";
const listeners = new Set<() => void>();
let marked = read();

function read(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Marks this person ("sub") as an operator; null removes the mark. */
export function markOperator(subject: string | null): void {
  if (marked === subject) return;
  marked = subject;
  try {
    if (subject === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, subject);
  } catch {
    // Without storage the mark lasts until the page loads again.
  }
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};

/** Whether this person is marked. */
export const useIsOperator = (subject: string | undefined): boolean =>
  useSyncExternalStore(subscribe, () => marked) === subject && subject !== undefined;
