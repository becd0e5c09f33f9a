import { act, render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { heard, useProject } from "./project";

function Shown() {
  const project = useProject();
  return <p>{project ? `${project.token} ${project.person}` : "off"}</p>;
}
const answer = (status: number, headers: Record<string, string> = {}) =>
  act(() => heard(new Response(null, { status, headers })));
const on = { "x-analytics-token": "phc_x", "x-analytics-id": "abc" };
const said = () => screen.getByText(/./).textContent;

afterEach(() => answer(204));

test("is off until a profile says otherwise, and off again with the profile", () => {
  render(<Shown />);
  answer(200);
  expect(said()).toBe("off");
  answer(200, on);
  expect(said()).toBe("phc_x abc");
  answer(503);
  expect(said()).toBe("phc_x abc");
  answer(204);
  expect(said()).toBe("off");
});

test.each(["doNotTrack", "globalPrivacyControl"])(
  "%s counts as a refusal, so the page does not ask",
  (name) => {
    vi.stubGlobal("navigator", { [name]: name === "doNotTrack" ? "1" : true });
    render(<Shown />);
    answer(200, on);
    expect(said()).toBe("off");
    vi.unstubAllGlobals();
  },
);
