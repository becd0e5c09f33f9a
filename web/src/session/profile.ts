/** Reads the signed-in person from the profile route over plain HTTP. */

/** The claims of a signed-in person. `sub` is always present; all others depend on provider and scope. */
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
    /** HTTP status; 0 if no response arrived. */
    readonly status: number,
    /** The `error` member of the response, such as `ERR_PROFILE_HANDLER_FAILURE`; empty if it has none. */
    readonly code: string,
    /** The request id for support requests; null if no response arrived. */
    readonly requestId: string | null,
    /** The wait that the server asks for, in seconds; null if it names none. */
    readonly retryAfterSeconds: number | null,
    message: string,
  ) {
    super(message);
  }

  /** Whether a retry may succeed: no network, a server that is down, or too many requests. */
  get transient(): boolean {
    return [0, 429, 502, 503, 504].includes(this.status);
  }
}

export interface ProfileRequest {
  /** The address of the profile route. */
  url: string;
  /** Read the profile from the provider again instead of from the session. */
  refetch?: boolean;
  fetch: typeof globalThis.fetch;
}

/** Reads the profile; null means signed out. Rejects only with `SessionError`. */
export async function readProfile({ url, refetch, fetch }: ProfileRequest): Promise<User | null> {
  let response: Response;
  try {
    response = await fetch(refetch ? `${url}?refetch=true` : url, {
      headers: { accept: "application/json" },
      credentials: "same-origin",
      cache: "no-store",
      // The edge answers this route itself; a redirect means that another server answered in its place.
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
