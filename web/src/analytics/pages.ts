import { paths } from "../paths";

// Pages that take part in signing in or out are never recorded.
const RECORDED = new Set<string>([paths.home, paths.account, paths.sessions, paths.session]);

/** Whether a page may be recorded. */
export const isRecorded = (path: string): boolean =>
  RECORDED.has(path.length > 1 ? path.replace(/\/$/, "") : path);
