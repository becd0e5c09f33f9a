import { expect, test } from "vitest";
import { addressOf, filterOf, KINDS, personAddress, type Search, searchOf } from "./filter";

const ISSUER = "https://login.example.test/realms/a b";
const OTHER = "https://partners.example.test";
const ISSUERS = [ISSUER, OTHER];

const search = (change: Partial<Search> = {}): Search => ({
  issuer: ISSUER,
  kind: "email",
  value: "ada+1@example.test",
  afterMs: null,
  beforeMs: null,
  ...change,
});
const read = (address: string) => searchOf(new URL(address, "https://here.test").searchParams, ISSUERS);

test.each(KINDS)("a search by %s is the same after a reload", (kind) => {
  const value = kind === "everyone" ? "" : "a&b=c d/24";
  const given = search({
    kind,
    value,
    issuer: OTHER,
    afterMs: 1_700_000_000_000,
    beforeMs: 1_800_000_000_000,
  });
  expect(read(addressOf(given))).toEqual(given);
});

test.each([
  ["no search", "/operator"],
  ["an unknown kind", "/operator?by=shoe&value=42"],
  ["an empty value", "/operator?by=email&value=%20"],
  ["a provider that the operator may not see", "/operator?provider=https://evil.test&by=everyone"],
])("%s shows the empty form", (_, address) => {
  expect(read(address)).toBeNull();
});

test("without a provider the first one counts, and a malformed time limits nothing", () => {
  expect(read("/operator?by=name&value=Ada&after=yesterday")).toEqual(search({ kind: "name", value: "Ada" }));
});

test("the filter names exactly one kind, and everyone only if chosen", () => {
  expect(filterOf(search({ kind: "provider_sid", value: "s1" })).by).toEqual({
    case: "providerSid",
    value: "s1",
  });
  expect(filterOf(search({ kind: "everyone", value: "" })).by).toEqual({ case: "everyone", value: true });
  expect(filterOf(search())).toEqual({ issuer: ISSUER, by: { case: "email", value: "ada+1@example.test" } });
});

test("a person's address keeps issuer and subject apart", () => {
  const params = new URL(personAddress(ISSUER, "a&provider=x"), "https://here.test").searchParams;
  expect([params.get("provider"), params.get("subject")]).toEqual([ISSUER, "a&provider=x"]);
});
