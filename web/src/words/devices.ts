import { describeDevice } from "../device";
import { words } from "./index";

/** A device in words: "Firefox on Linux". */
export function deviceName(userAgent: string): string {
  const device = describeDevice(userAgent);
  if (!device) return words.sessions.unknownBrowser;
  return device.system ? words.sessions.on(device.browser, device.system) : device.browser;
}
