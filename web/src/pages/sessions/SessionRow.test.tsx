import { create, type MessageInitShape } from "@bufbuild/protobuf";
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

/** The name of a session's row with all that stands beside it. */
function heading(init: MessageInitShape<typeof SessionSchema>): string {
  const session = create(SessionSchema, init);
  render(<SessionRow session={session} name="Chrome on Linux" now={0} busy={false} onEnd={vi.fn()} />);
  return screen.getByRole("heading").textContent;
}

const deviceBinding = { boundAt: timestampFromMs(1_700_000_000_000) };

test.each([
  [
    "this browser's, bound",
    { current: true, deviceBinding },
    [words.sessions.current, words.sessions.boundHere],
  ],
  ["another one, bound", { deviceBinding }, [words.sessions.boundElsewhere]],
  ["this browser's, not bound", { current: true }, [words.sessions.current]],
  ["another one, not bound", {}, []],
])("a session tells whether it is bound to its device: %s", (_, session, badges) => {
  expect(heading(session)).toBe(["Chrome on Linux", ...badges].join(""));
});
