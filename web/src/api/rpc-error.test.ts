import { BinaryWriter, base64Encode } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { reasonOf, toRpcFailure } from "./rpc-error";

/** google.rpc.Status with one detail, as the server writes it. */
function details(typeUrl: string, reason: string): string {
  const info = new BinaryWriter().tag(1, 2).string(reason).tag(2, 2).string("session.v1").finish();
  const any = new BinaryWriter().tag(1, 2).string(typeUrl).tag(2, 2).bytes(info).finish();
  return base64Encode(
    new BinaryWriter().tag(1, 0).int32(5).tag(2, 2).string("no").tag(3, 2).bytes(any).finish(),
  );
}

const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";

test("the reason is read out of ErrorInfo", () => {
  expect(reasonOf(details(ERROR_INFO, "ERR_MISSING_SESSION"))).toBe("ERR_MISSING_SESSION");
});

test.each([undefined, "", "%%%", "AAAA", details("type.googleapis.com/google.rpc.RetryInfo", "ERR_X")])(
  "gives no reason for %s",
  (header) => {
    expect(reasonOf(header)).toBe("");
  },
);

test("what the server says about the reason is read out of ErrorInfo", () => {
  const entry = new BinaryWriter().tag(1, 2).string("max_age").tag(2, 2).string("300").finish();
  const info = new BinaryWriter().tag(1, 2).string("ERR_X").tag(3, 2).bytes(entry).finish();
  const any = new BinaryWriter().tag(1, 2).string(ERROR_INFO).tag(2, 2).bytes(info).finish();
  const metadata = {
    "grpc-status-details-bin": base64Encode(new BinaryWriter().tag(3, 2).bytes(any).finish()),
  };
  expect(toRpcFailure({ code: 9, metadata }).metadata).toEqual({ max_age: "300" });
  expect(toRpcFailure({ code: 9 }).metadata).toEqual({});
});

test("a failure knows whether it may pass and what to quote", () => {
  const failure = toRpcFailure({ code: 14, message: "down", metadata: { "x-request-id": "abc" } });
  expect(failure).toMatchObject({ transient: true, missingSession: false, requestId: "abc" });
});

test("recognises a lost session by its reason, not by its status", () => {
  const metadata = { "grpc-status-details-bin": details(ERROR_INFO, "ERR_MISSING_SESSION") };
  expect(toRpcFailure({ code: 5, message: "", metadata }).missingSession).toBe(true);
  expect(toRpcFailure({ code: 5, message: "", metadata: {} }).missingSession).toBe(false);
});
