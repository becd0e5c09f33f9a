import { expect, test } from "vitest";
import { describeDevice } from "./device";

test.each([
  [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36",
    "Chrome",
    "Linux",
    "desktop",
  ],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0 Safari/537.36 Edg/148.0",
    "Edge",
    "Windows",
    "desktop",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile/15E148 Safari/604.1",
    "Safari",
    "iPhone",
    "phone",
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7; rv:150.0) Gecko/20100101 Firefox/150.0",
    "Firefox",
    "macOS",
    "desktop",
  ],
  [
    "Mozilla/5.0 (Linux; Android 16; Pixel 10) AppleWebKit/537.36 Chrome/148.0 Mobile Safari/537.36",
    "Chrome",
    "Android",
    "phone",
  ],
  ["curl/8.5.0", "curl", "", "terminal"],
])("%s", (agent, browser, system, kind) => {
  expect(describeDevice(agent)).toEqual({ browser, system, kind });
});

test("an empty header names no device", () => {
  expect(describeDevice("  ")).toBeNull();
});

test("an endless header names no endless device", () => {
  expect(describeDevice("x".repeat(5_000))?.browser.length).toBeLessThanOrEqual(40);
});
