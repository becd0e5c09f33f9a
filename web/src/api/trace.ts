/**
 * Trace context for calls the page makes (W3C Trace Context, section 3.2).
 * The edge decides whether to continue this trace or link to it. The page neither samples nor reports.
 */

const TRACE_ID_BYTES = 16;
const PARENT_ID_BYTES = 8;

function randomHex(bytes: number): string {
  const values = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(values, (value) => value.toString(16).padStart(2, "0")).join("");
}

/** Returns a new `traceparent` header value. */
export function traceparent(): string {
  return `00-${randomHex(TRACE_ID_BYTES)}-${randomHex(PARENT_ID_BYTES)}-01`;
}
