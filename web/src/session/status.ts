/** The status route: how long the session has left. Asking never extends it. */

export const STATUS_PATH = "/api/auth/status";

export interface TimeLeft {
  /** Until the session ends if it is not used. */
  seconds: number;
  /** Whether this is the last possible end, which no use puts off. */
  isLast: boolean;
}

/** Null if no session is there, or the answer cannot be read. */
export async function readTimeLeft(
  url: string,
  fetch: typeof globalThis.fetch,
  signal: AbortSignal,
): Promise<TimeLeft | null> {
  try {
    const response = await fetch(url, {
      headers: { accept: "application/json" },
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal,
    });
    const body: unknown = response.ok ? await response.json() : null;
    const { state, expires_in, absolute_expires_in } = (body ?? {}) as Record<string, unknown>;
    if (state === "signed_out" || typeof expires_in !== "number" || !Number.isFinite(expires_in)) return null;
    return { seconds: expires_in, isLast: expires_in === absolute_expires_in };
  } catch {
    return null;
  }
}
