import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { SessionSchema } from "../../gen/session/v1/session_pb";
import { timelineOf } from "./timeline";

const at = timestampFromMs;

test("marks stand in order between the start and the last possible end", () => {
  const session = create(SessionSchema, {
    createdAt: at(1_000),
    rolledAt: at(2_000),
    expiresAt: at(6_000),
    absoluteExpiresAt: at(11_000),
  });
  const timeline = timelineOf(session, 3_000);
  expect(timeline?.now).toBe(0.2);
  expect(timeline?.marks.map(({ name, at }) => [name, at])).toEqual([
    ["started", 0],
    ["rolled", 0.1],
    ["idle", 0.5],
    ["absolute", 1],
  ]);
});

test("a token that outlives the session stays on the line", () => {
  const session = create(SessionSchema, {
    createdAt: at(1_000),
    accessTokenExpiresAt: at(99_000),
    absoluteExpiresAt: at(11_000),
  });
  expect(timelineOf(session, 0)?.marks.find(({ name }) => name === "token")?.at).toBe(1);
});

test("a session that is bound to its device has a mark for when it was", () => {
  const session = create(SessionSchema, {
    createdAt: at(1_000),
    deviceBinding: { boundAt: at(1_500) },
    rolledAt: at(2_000),
    absoluteExpiresAt: at(11_000),
  });
  expect(timelineOf(session, 3_000)?.marks.map(({ name, at }) => [name, at])).toEqual([
    ["started", 0],
    ["bound", 0.05],
    ["rolled", 0.1],
    ["absolute", 1],
  ]);
});

test("a session without a beginning or an end has no line", () => {
  expect(timelineOf(create(SessionSchema, { createdAt: at(5) }), 6)).toBeNull();
});
