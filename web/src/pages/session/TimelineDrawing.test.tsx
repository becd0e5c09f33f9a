import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { words } from "../../words";
import { TimelineDrawing } from "./TimelineDrawing";
import type { MarkName } from "./timeline";

function rows(...names: MarkName[]): HTMLElement[] {
  const marks = names.map((name) => ({ name, ms: 0, at: 0 }));
  render(<TimelineDrawing timeline={{ marks, now: 0 }} nowMs={180_000} />);
  return screen.getAllByRole("listitem");
}

test("a device-bound session shows since when it is bound and what the binding does", () => {
  const [started, bound] = rows("started", "bound");
  expect(started?.textContent).toBe(`${words.session.started}3 minutes ago`);
  expect(bound?.textContent).toBe(`${words.session.bound}3 minutes ago${words.session.boundDetail}`);
});

test("an unbound session does not mention devices", () => {
  rows("started", "absolute");
  expect(screen.queryByText(words.session.boundDetail)).toBeNull();
});
