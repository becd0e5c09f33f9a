/**
 * Describes a User-Agent header in words, well enough for a person to recognise a device. No decision depends on it.
 * The header may be false, so the page presents it as a claim.
 */

export type DeviceKind = "desktop" | "phone" | "tablet" | "terminal";

export interface Described {
  browser: string;
  system: string;
  kind: DeviceKind;
}

// The order matters: most browsers also carry the names of browsers further down.
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\bOPR\/|\bOpera\b/, "Opera"],
  [/\bVivaldi\//, "Vivaldi"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\bFirefox\/|\bFxiOS\//, "Firefox"],
  [/\bHeadlessChrome\/|\bChrome\/|\bCriOS\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const SYSTEMS: readonly (readonly [RegExp, string, DeviceKind])[] = [
  [/\biPad\b/, "iPad", "tablet"],
  [/\biPhone\b/, "iPhone", "phone"],
  [/\bAndroid\b.*\bMobile\b/, "Android", "phone"],
  [/\bAndroid\b/, "Android", "tablet"],
  [/\bCrOS\b/, "ChromeOS", "desktop"],
  [/\bWindows\b/, "Windows", "desktop"],
  [/\bMac OS X\b|\bMacintosh\b/, "macOS", "desktop"],
  [/\bLinux\b|\bX11\b/, "Linux", "desktop"],
];

// A program chooses its own name, so the page shows at most this many characters of it.
const LONGEST_NAME = 40;

/** Returns null for an empty header. */
export function describeDevice(userAgent: string): Described | null {
  const agent = userAgent.trim();
  if (!agent) return null;
  const browser = BROWSERS.find(([pattern]) => pattern.test(agent))?.[1];
  const system = SYSTEMS.find(([pattern]) => pattern.test(agent));
  if (browser && system) return { browser, system: system[1], kind: system[2] };
  // A program puts its own name first: "curl/8.5.0".
  const name = browser ?? agent.split(/[\s/(]/, 1)[0]?.slice(0, LONGEST_NAME) ?? "";
  return { browser: name, system: system?.[1] ?? "", kind: system?.[2] ?? "terminal" };
}
