/** A profile route for tests. Sends the given responses in order, then repeats the last one. */

export type Answer = { status: number; body?: unknown; headers?: Record<string, string> } | "no network";

export const ada = { sub: "ada", name: "Ada Lovelace", email: "ada@example.test", email_verified: true };
export const ok: Answer = { status: 200, body: ada };
export const signedOut: Answer = { status: 204 };
export const down: Answer = {
  status: 503,
  body: { error: "ERR_SESSION_SERVICE_UNAVAILABLE" },
  headers: { "retry-after": "1" },
};

export interface ProfileServer {
  fetch: typeof globalThis.fetch;
  asked: string[];
  answer(...answers: Answer[]): void;
}

export function profileServer(...answers: Answer[]): ProfileServer {
  let left = answers;
  const asked: string[] = [];
  return {
    asked,
    answer: (...next) => {
      left = next;
    },
    fetch: async (input) => {
      asked.push(String(input));
      const answer = left.length > 1 ? left.shift() : left[0];
      if (!answer || answer === "no network") throw new TypeError("Failed to fetch");
      const { status, body, headers } = answer;
      return new Response(body === undefined ? null : JSON.stringify(body), {
        status,
        ...(headers && { headers }),
      });
    },
  };
}
