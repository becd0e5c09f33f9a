/**
 * The error of a gRPC-Web call. `reason` is a value of `ErrorReason` from the contract, read from
 * google.rpc.ErrorInfo. Responses without it (a proxy's page, a cut connection) have an empty reason.
 */
import { BinaryReader, base64Decode } from "@bufbuild/protobuf/wire";
import type { ErrorReason } from "../gen/session/v1/error_reason_pb";

/** The wire name of a reason: `ERR_MISSING_SESSION`. */
export type Reason = keyof typeof ErrorReason | "";

// google.rpc.Code
export const INVALID_ARGUMENT = 3;
const DEADLINE_EXCEEDED = 4;
const RESOURCE_EXHAUSTED = 8;
export const FAILED_PRECONDITION = 9;
export const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;

/** A failed call. */
export class RpcFailure extends Error {
  override readonly name = "RpcFailure";

  constructor(
    /** gRPC status code. */
    readonly code: number,
    /** `ERR_…`, or empty. */
    readonly reason: Reason,
    /** The request id for support requests, if the edge sent one. */
    readonly requestId: string | null,
    message: string,
    /** What the server says about the reason, by name. */
    readonly metadata: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }

  /** Whether a later retry may succeed without any loss. */
  get transient(): boolean {
    return this.code === UNAVAILABLE || this.code === DEADLINE_EXCEEDED || this.code === RESOURCE_EXHAUSTED;
  }

  /** Whether the session is gone. */
  get missingSession(): boolean {
    return this.reason === "ERR_MISSING_SESSION";
  }
}

/** Converts the errors of grpc-web into an `RpcFailure`. */
export function toRpcFailure(cause: unknown): RpcFailure {
  if (cause instanceof RpcFailure) return cause;
  const { code, message, metadata } = (cause ?? {}) as Partial<{
    code: number;
    message: string;
    metadata: Record<string, string>;
  }>;
  const details = metadata?.["grpc-status-details-bin"];
  const failure = new RpcFailure(
    code ?? 2,
    reasonOf(details),
    metadata?.["x-request-id"] ?? null,
    message ?? "",
    metadataOf(details),
  );
  failure.cause = cause;
  return failure;
}

const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";

/** Reads ErrorInfo.reason from a base64 google.rpc.Status; returns an empty string if it is missing or malformed. */
export const reasonOf = (detailsBase64: string | undefined): Reason =>
  (inErrorInfo(detailsBase64, 1).map(text)[0] ?? "") as Reason;

/** Reads ErrorInfo.metadata from a base64 google.rpc.Status. */
function metadataOf(detailsBase64: string | undefined): Record<string, string> {
  const entries = inErrorInfo(detailsBase64, 3).map((entry) =>
    [1, 2].map((part) => fields(entry, part).map(text)[0] ?? ""),
  );
  return Object.fromEntries(entries);
}

/** The values of one field of ErrorInfo; none if the status has no ErrorInfo or is malformed. */
function inErrorInfo(detailsBase64: string | undefined, wanted: number): Uint8Array[] {
  try {
    for (const any of fields(base64Decode(detailsBase64 ?? ""), 3)) {
      const [typeUrl] = fields(any, 1);
      const [value] = fields(any, 2);
      if (typeUrl && value && text(typeUrl) === ERROR_INFO) return fields(value, wanted);
    }
  } catch {
    // Ignore a malformed detail; the status code is still valid.
  }
  return [];
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** All length-delimited values of one field of a message: enough for Status, Any and ErrorInfo. */
function fields(message: Uint8Array, wanted: number): Uint8Array[] {
  const reader = new BinaryReader(message);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === wanted && wireType === 2) found.push(reader.bytes());
    else reader.skip(wireType, field);
  }
  return found;
}
