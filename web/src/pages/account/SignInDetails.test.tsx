import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { currentSessionQuery } from "../../api/queries";
import { SessionSchema } from "../../gen/session/v1/session_pb";
import { words } from "../../words";
import { SignInDetails } from "./SignInDetails";

const say = words.account;
const HOUR_MS = 3_600_000;
const ago = (hours: number) => timestampFromMs(Date.now() - hours * HOUR_MS);

/** The text that the page shows as the time of sign-in. */
function signedIn(session: MessageInitShape<typeof SessionSchema>): string | null | undefined {
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY } } });
  const data = { session: create(SessionSchema, session), skewMs: 0, providerName: "" };
  client.setQueryData(currentSessionQuery.queryKey, data);
  render(
    <QueryClientProvider client={client}>
      <SignInDetails />
    </QueryClientProvider>,
  );
  return screen.getByText(say.signedIn).nextElementSibling?.textContent;
}

test("a provider that sends no time of authentication: the time the session began", () => {
  expect(signedIn({ createdAt: ago(3) })).toMatch(/^3 hours ago/);
});

test("a provider that sends one: that time", () => {
  expect(signedIn({ createdAt: ago(3), authenticatedAt: ago(5) })).toMatch(/^5 hours ago/);
});
