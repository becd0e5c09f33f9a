/** The status route: the time that the session has left. Reading it never extends the session. */

export const STATUS_PATH = "/api/auth/status";

export interface TimeLeft {
  /** Time until the session ends if it is not used. */
  seconds: number;
  /** Whether this is the latest possible end, which no use can extend. */
  isLast: boolean;
}

/** Returns null if there is no session or the response is malformed. */
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
