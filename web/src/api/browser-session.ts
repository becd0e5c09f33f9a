/** BrowserSessionService as plain functions. They use the generated messages unchanged. */

import type {
  ListMySessionsResponse,
  RollCurrentSessionResponse,
} from "../gen/session/v1/browser_session_service_pb";
import {
  BrowserSessionService,
  type GetCurrentSessionResponse,
} from "../gen/session/v1/browser_session_service_pb";
import type { SessionEvent } from "../gen/session/v1/session_pb";
import { call, open, type StreamReader } from "./transport";

const rpc = BrowserSessionService.method;

/** Reads this browser's session without extending it. */
export const getCurrentSession = (signal?: AbortSignal): Promise<GetCurrentSessionResponse> =>
  call(rpc.getCurrentSession, {}, signal);

/** Extends this browser's session. */
export const rollCurrentSession = (): Promise<RollCurrentSessionResponse> => call(rpc.rollCurrentSession, {});

/** One page of this person's sessions. */
export const listMySessions = (pageToken: string, signal?: AbortSignal): Promise<ListMySessionsResponse> =>
  call(rpc.listMySessions, { pageToken }, signal);

/** Ends one session of this person; false if it had already ended. */
export const endMySession = async (handle: string): Promise<boolean> =>
  (await call(rpc.endMySession, { handle })).ended;

/** Ends all sessions of this person except this browser's; returns how many. */
export const endMyOtherSessions = async (): Promise<number> =>
  (await call(rpc.endMyOtherSessions, {})).endedCount;

/** Watches this person's sessions from `resumeToken` on. The returned function stops the watch. */
export const watchMySession = (resumeToken: string, reader: StreamReader<SessionEvent>): (() => void) =>
  open(rpc.watchMySession, { resumeToken }, reader);
