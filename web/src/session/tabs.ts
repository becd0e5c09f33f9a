/** Messages between the tabs of one browser. They hold no personal data, only the kind of change. */

/**
 * `signed-out`: the person signed out in a tab. `changed`: the profile or the session may have changed. `signed-in`:
 * a newly opened page found a signed-in person.
 */
export type TabMessage = (typeof MESSAGES)[number];

const MESSAGES = ["signed-out", "changed", "signed-in"] as const;

const CHANNEL = "session";

export interface Tabs {
  tell(message: TabMessage): void;
  close(): void;
}

/** Joins the channel of the other tabs. Without BroadcastChannel in the browser, tabs stay independent. */
export function joinTabs(hear: (message: TabMessage) => void): Tabs {
  if (typeof BroadcastChannel === "undefined") return { tell() {}, close() {} };
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }) => {
    if (MESSAGES.includes(data)) hear(data);
  };
  return {
    tell: (message) => channel.postMessage(message),
    close: () => channel.close(),
  };
}
