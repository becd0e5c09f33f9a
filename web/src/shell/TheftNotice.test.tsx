import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { currentSessionQuery } from "../api/queries";
import { SessionSchema } from "../gen/session/v1/session_pb";
import { words } from "../words";
import { briefly } from "../words/times";
import { TheftNotice } from "./TheftNotice";

const say = words.theft;
const AT = 1_700_000_000_000;

/** The guard's cached response for this browser's session. */
const read = (client: QueryClient, theftAtMs?: number) =>
  client.setQueryData(currentSessionQuery.queryKey, {
    session: create(SessionSchema, {
      handle: "a".repeat(32),
      ...(theftAtMs && { theftAt: timestampFromMs(theftAtMs) }),
    }),
    skewMs: 0,
    providerName: "",
  });

function show(client = new QueryClient()) {
  return render(
    <QueryClientProvider client={client}>
      <h1 tabIndex={-1}>A page</h1>
      <TheftNotice>
        <a href="/somewhere">on</a>
      </TheftNotice>
    </QueryClientProvider>,
  );
}

function showRead(theftAtMs?: number) {
  const client = new QueryClient();
  read(client, theftAtMs);
  return { client, ...show(client) };
}

const notice = () => screen.queryByRole("heading", { level: 2, name: say.title });
const dismiss = () => act(() => screen.getByRole("button", { name: say.dismiss }).click());

test("reports a copy of another session's cookie: its time, its meaning, and the next step", () => {
  showRead(AT);
  expect(notice()).toBeTruthy();
  const said = screen.getByRole("status").textContent;
  expect(said).toContain(briefly(AT));
  expect(said).toContain(say.detail(briefly(AT)));
  expect(screen.getByRole("link", { name: "on" })).toBeTruthy();
});

test("a session with nothing to tell says nothing", () => {
  showRead();
  expect(screen.queryByRole("status")).toBeNull();
});

test("the notice sends no request, and appears after the guard has read the session", async () => {
  const client = new QueryClient();
  show(client);
  expect(client.isFetching()).toBe(0);
  expect(notice()).toBeNull();
  read(client, AT);
  expect(await screen.findByRole("heading", { name: say.title })).toBeTruthy();
});

test("the focus is left alone until it is dismissed, and then goes to the page's heading", () => {
  showRead(AT);
  expect(document.activeElement).toBe(document.body);
  screen.getByRole("button", { name: say.dismiss }).focus();
  dismiss();
  expect(notice()).toBeNull();
  expect(document.activeElement).toBe(screen.getByRole("heading", { level: 1 }));
});

test("a dismissed notice stays away on every page; the next theft shows a new one", () => {
  const first = showRead(AT);
  dismiss();
  first.unmount();
  const second = showRead(AT);
  expect(notice()).toBeNull();
  second.unmount();
  showRead(AT + 1);
  expect(notice()).toBeTruthy();
});

test("without storage it can be dismissed all the same", () => {
  const forbid = () => {
    throw new DOMException("forbidden", "SecurityError");
  };
  vi.spyOn(Storage.prototype, "getItem").mockImplementation(forbid);
  vi.spyOn(Storage.prototype, "setItem").mockImplementation(forbid);
  showRead(AT);
  dismiss();
  expect(notice()).toBeNull();
});
