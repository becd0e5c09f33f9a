/** The profile route: who is signed in, asked over plain HTTP. */

/** The claims of a signed-in person. `sub` is always there; everything else depends on provider and scope. */
export interface User {
  readonly sub: string;
  readonly name?: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly picture?: string;
  readonly [claim: string]: unknown;
}

/** Why the profile could not be read. */
export class SessionError extends Error {
  override readonly name = "SessionError";

  constructor(
    /** HTTP status; 0 when no answer came at all. */
    readonly status: number,
    /** The `error` member of the answer, such as `ERR_PROFILE_HANDLER_FAILURE`; empty when it has none. */
    readonly code: string,
    /** The request id to quote; null when no answer came. */
    readonly requestId: string | null,
    /** How long the server asks to wait, in seconds; null when it does not say. */
    readonly retryAfterSeconds: number | null,
    message: string,
  ) {
    super(message);
  }

  /** Whether the same question may have an answer later: no network, a server that is down, or too many requests. */
  get transient(): boolean {
    return [0, 429, 502, 503, 504].includes(this.status);
  }
}

export interface ProfileRequest {
  /** Where the profile route is. */
  url: string;
  /** Ask the provider anew instead of reading what the session remembers. */
  refetch?: boolean;
  fetch: typeof globalThis.fetch;
}

/** Reads the profile; null means signed out. Rejects with `SessionError` alone. */
export async function readProfile({ url, refetch, fetch }: ProfileRequest): Promise<User | null> {
  let response: Response;
  try {
    response = await fetch(refetch ? `${url}?refetch=true` : url, {
      headers: { accept: "application/json" },
      credentials: "same-origin",
      cache: "no-store",
      // The edge answers this route itself; a redirect means something else stands in between.
      redirect: "error",
    });
  } catch (cause) {
    throw failure(0, {}, null, cause);
  }
  if (response.status === 204) return null;
  const requestId = response.headers.get("x-request-id");
  let body: unknown;
  try {
    body = await response.json();
  } catch (cause) {
    throw failure(response.ok ? 502 : response.status, {}, response, cause);
  }
  if (!response.ok) throw failure(response.status, body, response);
  if (!isUser(body))
    throw failure(502, {}, response, new TypeError(`no profile in the answer ${requestId ?? ""}`));
  return body;
}

const isUser = (body: unknown): body is User =>
  typeof body === "object" && body !== null && typeof (body as { sub?: unknown }).sub === "string";

function failure(status: number, body: unknown, response: Response | null, cause?: unknown): SessionError {
  const members = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const said = members.error_description ?? members.description;
  const retryAfter = Number.parseInt(response?.headers.get("retry-after") ?? "", 10);
  const error = new SessionError(
    status,
    typeof members.error === "string" ? members.error : "",
    response?.headers.get("x-request-id") ?? null,
    Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter : null,
    typeof said === "string" ? said : `profile request failed with status ${status}`,
  );
  if (cause !== undefined) error.cause = cause;
  return error;
}
