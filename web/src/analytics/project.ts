/**
 * Whether product analytics is on, learned from the profile the app reads anyway: with it off (as it comes) there is no
 * request, no code and no question. A browser that says "do not track" is never asked either.
 */
import { useSyncExternalStore } from "react";

export interface Project {
  /** The project's public token. */
  readonly token: string;
  /** Whom the person is called there: a keyed hash made by the edge, without meaning to anybody else. */
  readonly person: string;
}

let project: Project | null = null;
const listeners = new Set<() => void>();

function refused(): boolean {
  const { doNotTrack, globalPrivacyControl } = navigator as Navigator & { globalPrivacyControl?: boolean };
  return doNotTrack === "1" || globalPrivacyControl === true;
}

/** Reads what a profile answer says about analytics; an answer without a profile says that there is none. */
export function heard({ status, headers }: Response): void {
  // A failing check says nothing about it.
  if (status !== 200 && status !== 204) return;
  const token = headers.get("x-analytics-token");
  const person = headers.get("x-analytics-id");
  const next = token && person && !refused() ? { token, person } : null;
  if (next?.token === project?.token && next?.person === project?.person) return;
  project = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The project to send to; null when there is nothing to send or nobody to ask. */
export const useProject = (): Project | null => useSyncExternalStore(subscribe, () => project);
