import { describeDevice } from "../device";
import { words } from "./index";

/** A device in words: "Firefox on Linux", or what is known of it. */
export const describe = ({ browser, system }: { browser: string; system: string }): string =>
  browser && system ? words.sessions.on(browser, system) : browser || system;

/** The device of a User-Agent header in words. */
export function deviceName(userAgent: string): string {
  const device = describeDevice(userAgent);
  return device ? describe(device) : words.sessions.unknownBrowser;
}
