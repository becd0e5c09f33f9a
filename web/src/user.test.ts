import { expect, test } from "vitest";
import { initials } from "./ui/Avatar";
import { displayName, emailVerified } from "./user";

test.each([
  [{ sub: "s", name: " Ada Lovelace " }, "Ada Lovelace"],
  [{ sub: "s", name: "", given_name: "Ada", family_name: "L" }, "Ada L"],
  [{ sub: "s", preferred_username: "ada" }, "ada"],
  [{ sub: "s", email: "ada@example.test" }, "ada@example.test"],
  [{ sub: "s" }, "s"],
])("%j is called %s", (user, name) => {
  expect(displayName(user)).toBe(name);
});

test.each([
  ["Ada Lovelace", "AL"],
  ["ada", "A"],
  ["محمد الخوارزمي", "ما"],
  ["👩‍🚀 Cosmos", "👩‍🚀C"],
  ["   ", ""],
])("%s is abbreviated %s", (name, letters) => {
  expect(initials(name)).toBe(letters);
});

test("only the truth verifies an address", () => {
  expect(emailVerified({ sub: "s", email_verified: true })).toBe(true);
  expect(emailVerified({ sub: "s" })).toBe(false);
});
