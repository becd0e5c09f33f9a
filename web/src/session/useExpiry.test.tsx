import { act, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ok, profileServer } from "../testing/server";
import { createSessionStore, SessionProvider, useExpiry } from "./index";

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: false });
});
afterEach(() => {
  vi.useRealTimers();
});

function Left(props: { fetch: typeof globalThis.fetch }) {
  const { secondsLeft, isLast, stay } = useExpiry({ warnSeconds: 60, fetch: props.fetch });
  return (
    <button type="button" onClick={() => void stay()}>
      {secondsLeft === null ? "no warning" : `${secondsLeft} left${isLast ? " at most" : ""}`}
    </button>
  );
}

/** Renders a page whose session has this many seconds left, according to the server. */
async function show(seconds: number | null) {
  const profile = profileServer(ok);
  const asked: string[] = [];
  let left = seconds;
  let last = 86_400;
  const status: typeof globalThis.fetch = async (url) => {
    asked.push(String(url));
    return Response.json(
      left === null
        ? { state: "signed_out" }
        : { state: "active", expires_in: left, absolute_expires_in: last },
    );
  };
  render(
    <SessionProvider store={createSessionStore({ fetch: profile.fetch })}>
      <Left fetch={status} />
    </SessionProvider>,
  );
  await act(() => vi.advanceTimersByTimeAsync(0));
  return {
    profile,
    asked,
    set: (seconds: number | null, lastSeconds = 86_400) => {
      left = seconds;
      last = lastSeconds;
    },
  };
}
const pass = (seconds: number) => act(() => vi.advanceTimersByTimeAsync(seconds * 1_000));
const said = () => screen.getByRole("button").textContent;

test("says nothing before the warning and counts down from there", async () => {
  const page = await show(100);
  expect(said()).toBe("no warning");
  page.set(60);
  await pass(40);
  expect(said()).toBe("60 left");
  await pass(3);
  expect(said()).toBe("57 left");
});

test("a browser whose date jumps counts on undisturbed", async () => {
  await show(50);
  expect(said()).toBe("50 left");
  vi.setSystemTime(Date.now() + 3_600_000);
  await pass(2);
  expect(said()).toBe("48 left");
});

test("staying reads the profile, which extends the session, and takes the warning away", async () => {
  const page = await show(30);
  page.set(900);
  await act(async () => screen.getByRole("button").click());
  await pass(0);
  expect(said()).toBe("no warning");
  expect(page.profile.asked).toHaveLength(2);
});

test("another tab that stays takes the warning away here too", async () => {
  const page = await show(50);
  page.set(900);
  await pass(16);
  expect(said()).toBe("no warning");
});

test("at the end the session is checked", async () => {
  const page = await show(2);
  page.set(0);
  await pass(3);
  expect(page.profile.asked.length).toBeGreaterThan(1);
});

test("a status that cannot be read says nothing and is asked again", async () => {
  const page = await show(null);
  expect(said()).toBe("no warning");
  const before = page.asked.length;
  await pass(16);
  expect(page.asked.length).toBeGreaterThan(before);
});

test("distinguishes an end that no use can extend", async () => {
  const page = await show(50);
  expect(said()).toBe("50 left");
  page.set(30, 30);
  await pass(16);
  expect(said()).toBe("29 left at most");
});
