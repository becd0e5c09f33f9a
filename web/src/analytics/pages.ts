import { paths } from "../paths";

// Never where signing in or out is going on.
const RECORDED = new Set<string>([paths.home, paths.account, paths.sessions, paths.session]);

/** Whether a page may be recorded. */
export const isRecorded = (path: string): boolean =>
  RECORDED.has(path.length > 1 ? path.replace(/\/$/, "") : path);
