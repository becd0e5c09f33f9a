/** What the tabs of one browser tell each other. Nothing about the person: only that something changed. */

/**
 * `signed-out`: somebody signed out here. `changed`: the profile or the session may be another one now. `signed-in`: a page
 * was opened that found somebody signed in.
 */
export type TabMessage = (typeof MESSAGES)[number];

const MESSAGES = ["signed-out", "changed", "signed-in"] as const;

const CHANNEL = "session";

export interface Tabs {
  tell(message: TabMessage): void;
  close(): void;
}

/** Joins the other tabs; where the browser has no BroadcastChannel, every tab is alone. */
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
