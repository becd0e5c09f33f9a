import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { currentSessionQuery } from "../api/queries";
import { SessionSchema } from "../gen/session/v1/session_pb";
import { words } from "../words";
import { briefly } from "../words/times";
import { SessionNotices } from "./SessionNotices";

const AT = 1_700_000_000_000;

function show(notice?: { atMs: number; text: string }) {
  const client = new QueryClient();
  const operatorNotice = notice && { at: timestampFromMs(notice.atMs), text: notice.text };
  client.setQueryData(currentSessionQuery.queryKey, {
    session: create(SessionSchema, { ...(operatorNotice && { operatorNotice }) }),
    skewMs: 0,
    providerName: "",
  });
  return render(
    <QueryClientProvider client={client}>
      <h1 tabIndex={-1}>A page</h1>
      <SessionNotices />
    </QueryClientProvider>,
  );
}
const title = words.operatorNotice(briefly(AT));
const dismiss = () => act(() => screen.getByRole("button", { name: words.theft.dismiss }).click());

test("shows an operator's words as plain text in their own direction", async () => {
  const text = 'Please call us: <a href="https://example.test">here</a> https://example.test';
  show({ atMs: AT, text });
  await screen.findByRole("heading", { level: 2, name: title });
  expect(screen.getByText(text).tagName).toBe("BDI");
  expect(screen.queryByRole("link")).toBeNull();
});

test("a session without such words shows nothing", () => {
  show();
  expect(screen.queryByRole("status")).toBeNull();
});

test("a dismissed notice stays away and gives the focus to the heading; a later one shows", async () => {
  const first = show({ atMs: AT, text: "one" });
  await screen.findByText("one");
  dismiss();
  expect(document.activeElement).toBe(screen.getByRole("heading", { level: 1 }));
  first.unmount();
  const second = show({ atMs: AT, text: "one" });
  await act(async () => {});
  expect(screen.queryByText("one")).toBeNull();
  second.unmount();
  show({ atMs: AT + 1, text: "two" });
  await screen.findByText("two");
});
