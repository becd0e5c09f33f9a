import { expect, test } from "vitest";
import { RpcFailure } from "../../api/rpc-error";
import { signInUrl } from "./Trouble";

test("the sign-in satisfies what the edge demands, and nothing else of the answer reaches its address", () => {
  window.history.replaceState(null, "", "/operator?by=everyone");
  const named = { max_age: "300", acr_values: "gold silver", returnTo: "//evil.test", prompt: "none" };
  const url = new URL(
    signInUrl(new RpcFailure(9, "ERR_FAILED_REFRESH_GRANT", null, "", named)),
    "https://here.test",
  );
  expect(url.pathname).toBe("/api/auth/login");
  expect([...url.searchParams]).toEqual([
    ["returnTo", "/operator?by=everyone"],
    ["max_age", "300"],
    ["acr_values", "gold silver"],
  ]);
});
