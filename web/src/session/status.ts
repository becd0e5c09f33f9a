/** The status route: how long the session has left. Asking never extends it. */

export const STATUS_PATH = "/api/auth/status";

/** Seconds until the session ends when nobody uses it; null when nobody is signed in or it cannot be told now. */
export async function readSecondsLeft(
  url: string,
  fetch: typeof globalThis.fetch,
  signal: AbortSignal,
): Promise<number | null> {
  try {
    const response = await fetch(url, {
      headers: { accept: "application/json" },
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal,
    });
    const body: unknown = response.ok ? await response.json() : null;
    const { state, expires_in: left } = (body ?? {}) as { state?: unknown; expires_in?: unknown };
    return state !== "signed_out" && typeof left === "number" && Number.isFinite(left) ? left : null;
  } catch {
    return null;
  }
}
