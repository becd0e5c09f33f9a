import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type Activity, ActivitySchema } from "../../gen/session/v1/operator_session_service_pb";
import { Cause, SessionEvent_Kind as Kind } from "../../gen/session/v1/session_pb";
import { add, EMPTY, MOST_ROWS } from "./activity-log";

const event = (kind: Kind, cause = Cause.UNSPECIFIED): Activity =>
  create(ActivitySchema, { what: { case: "event", value: { kind, cause, subject: "ada" } } });

test("sign-ins and endings are rows, the newest first; heartbeats and uses are not", () => {
  const kinds = [Kind.CREATED, Kind.HEARTBEAT, Kind.ROLLED, Kind.REFRESHED, Kind.CHANGED];
  const log = [...kinds.map((kind) => event(kind)), event(Kind.ENDED, Cause.THEFT)].reduce(add, EMPTY);
  expect(log.rows.map(({ what, cause }) => [what, cause])).toEqual([
    ["ending", Cause.THEFT],
    ["sign-in", Cause.UNSPECIFIED],
  ]);
  expect([log.signIns, log.endings]).toEqual([1, 1]);
});

test("lost events are a row and no count", () => {
  const log = add(EMPTY, event(Kind.MISSED));
  expect([log.rows.length, log.signIns, log.endings]).toEqual([1, 0, 0]);
});

test("the list keeps the latest rows, the counts keep all", () => {
  let log = EMPTY;
  for (let at = 0; at < MOST_ROWS + 5; at += 1) log = add(log, event(Kind.CREATED));
  expect(log.rows).toHaveLength(MOST_ROWS);
  expect(log.rows[0]?.number).toBe(MOST_ROWS + 5);
  expect(log.signIns).toBe(MOST_ROWS + 5);
});

test("failed sign-ins replace those of the message before", () => {
  const failures = (count: bigint) =>
    create(ActivitySchema, { what: { case: "failures", value: { byError: { denied: count } } } });
  const log = [failures(1n), event(Kind.CREATED), failures(3n)].reduce(add, EMPTY);
  expect(log.failures?.byError).toEqual({ denied: 3n });
  expect(log.rows).toHaveLength(1);
});
