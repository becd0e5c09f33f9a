import { afterEach, expect, test } from "vitest";
import { isHereOnly, landAfterSignOut } from "./leaving";

const at = (path: string) => window.history.replaceState(null, "", path);

afterEach(() => {
  window.sessionStorage.clear();
  at("/");
});

test("who has just signed out goes on from the start page to the page that says so, once", () => {
  window.sessionStorage.setItem("signing-out", "1");
  at("/?state=of-the-provider");
  landAfterSignOut();
  expect(window.location.pathname + window.location.search).toBe("/signed-out");
  at("/");
  landAfterSignOut();
  expect(window.location.pathname).toBe("/");
});

test("who stayed at the provider or went elsewhere is left where they are", () => {
  window.sessionStorage.setItem("signing-out", "1");
  at("/account");
  landAfterSignOut();
  expect(window.location.pathname).toBe("/account");
  expect(window.sessionStorage.length).toBe(0);
});

test("the page says that the provider's session goes on, where it does", () => {
  for (const [address, goesOn] of [
    ["/#signed-out-here-only", true],
    ["/#elsewhere", false],
  ] as const) {
    window.sessionStorage.setItem("signing-out", "1");
    at(address);
    landAfterSignOut();
    expect([window.location.pathname, isHereOnly()]).toEqual(["/signed-out", goesOn]);
  }
});
