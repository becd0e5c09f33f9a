import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { SessionSchema, Session_State as State } from "../../gen/session/v1/session_pb";
import { words } from "../../words";
import { SessionRow } from "./SessionRow";

test("a session that cannot be read is told as such and can be ended", () => {
  const session = create(SessionSchema, {
    handle: "0".repeat(32),
    state: State.UNREADABLE,
    createdAt: timestampFromMs(1_700_000_000_000),
  });
  const onEnd = vi.fn();
  render(
    <SessionRow
      session={session}
      name={words.sessions.unreadable}
      now={1_700_000_060_000}
      busy={false}
      onEnd={onEnd}
    />,
  );
  expect(screen.getByText(words.sessions.unreadableDetail)).toBeTruthy();
  expect(screen.queryByText(/Last active/)).toBeNull();
  screen.getByRole("button", { name: words.sessions.endLabel(words.sessions.unreadable) }).click();
  expect(onEnd).toHaveBeenCalledOnce();
});
