/**
 * Trace context for calls the page makes (W3C Trace Context, section 3.2).
 * The edge decides whether it continues our trace or links to it; nothing here samples or reports.
 */

const TRACE_ID_BYTES = 16;
const PARENT_ID_BYTES = 8;

function randomHex(bytes: number): string {
  const values = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(values, (value) => value.toString(16).padStart(2, "0")).join("");
}

/** A fresh `traceparent` header value. */
export function traceparent(): string {
  return `00-${randomHex(TRACE_ID_BYTES)}-${randomHex(PARENT_ID_BYTES)}-01`;
}
