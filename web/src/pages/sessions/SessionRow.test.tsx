import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { render, screen, within } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { DeviceSchema, SessionSchema, Session_State as State } from "../../gen/session/v1/session_pb";
import { words } from "../../words";
import { EndedRow, SessionRow } from "./SessionRow";

const NOTHING_SHARED = { browser: "", system: "", address: "" };
const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36";

test("an unreadable session is shown as such and can be ended", () => {
  const session = create(SessionSchema, {
    handle: "0".repeat(32),
    state: State.UNREADABLE,
    createdAt: timestampFromMs(1_700_000_000_000),
  });
  const onEnd = vi.fn();
  render(
    <SessionRow
      session={session}
      shared={NOTHING_SHARED}
      label="one of them"
      now={1_700_000_060_000}
      busy={false}
      onEnd={onEnd}
    />,
  );
  expect(screen.getByText(words.sessions.unreadableDetail)).toBeTruthy();
  expect(screen.queryByText(/Last active/)).toBeNull();
  screen.getByRole("button", { name: words.sessions.endLabel("one of them") }).click();
  expect(onEnd).toHaveBeenCalledOnce();
});

/** The name of a session's row with its badges. */
function heading(init: MessageInitShape<typeof SessionSchema>, shared = NOTHING_SHARED): string {
  const session = create(SessionSchema, init);
  session.createdOn = create(DeviceSchema, { userAgent: CHROME, address: "192.0.2.1" });
  session.createdAt = timestampFromMs(1_000);
  render(
    <SessionRow session={session} shared={shared} label="one" now={61_000} busy={false} onEnd={vi.fn()} />,
  );
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

test("a row leaves out what the list says of all sessions", () => {
  expect(heading({}, { browser: "", system: "Linux", address: "192.0.2.1" })).toBe("Chrome");
  expect(screen.queryByText("192.0.2.1")).toBeNull();
  expect(screen.getByText(/Started/).textContent).toBe("Started 1 minute ago");
});

test("a row whose device is that of all sessions is called by its start, once", () => {
  expect(heading({}, { ...NOTHING_SHARED, browser: "Chrome", system: "Linux" })).toBe("Started 1 minute ago");
  expect(screen.getAllByText(/Started/)).toHaveLength(1);
});

test("the place of an ended session says so and has the focus that its button lost", () => {
  render(<EndedRow session={create(SessionSchema, { createdOn: { userAgent: CHROME } })} />);
  const row = screen.getByRole("listitem");
  expect(document.activeElement).toBe(row);
  expect(within(row).getByRole("status").textContent).toBe("Chrome on Linux is signed out.");
});

test("the place of an ended session leaves the focus alone that is elsewhere", () => {
  render(<input aria-label="elsewhere" />);
  screen.getByLabelText("elsewhere").focus();
  render(<EndedRow session={create(SessionSchema, {})} />);
  expect(document.activeElement).toBe(screen.getByLabelText("elsewhere"));
});
