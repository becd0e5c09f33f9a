/**
 * The product analytics settings, read from the profile response that the app fetches anyway. If analytics is off
 * (the default), there is no extra request, code or question. A browser that sends "do not track" is never asked.
 */
import { useSyncExternalStore } from "react";

export interface Project {
  /** The project's public token. */
  readonly token: string;
  /** The person's id at the analytics server: a keyed hash made by the edge, meaningless to other parties. */
  readonly person: string;
}

let project: Project | null = null;
const listeners = new Set<() => void>();

function refused(): boolean {
  const { doNotTrack, globalPrivacyControl } = navigator as Navigator & { globalPrivacyControl?: boolean };
  return doNotTrack === "1" || globalPrivacyControl === true;
}

/** Reads the analytics settings from a profile response. A profile without settings means that analytics is off. */
export function heard({ status, headers }: Response): void {
  // A failed check does not change the settings.
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

/** The project to send to; null if analytics is off or the browser asks not to be tracked. */
export const useProject = (): Project | null => useSyncExternalStore(subscribe, () => project);
