/** OperatorSessionService as plain functions. The edge fills in who the operator is; the page sends the purpose. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type Activity,
  type EndFoundSessionsResponse,
  type ListEndingsResponse_Ending,
  type ListProvidersResponse_Provider,
  OperatorSessionService,
  type SearchSessionsResponse,
  type SessionFilterSchema,
} from "../gen/session/v1/operator_session_service_pb";
import { call, open, type StreamReader } from "./transport";

const rpc = OperatorSessionService.method;

export type Filter = MessageInitShape<typeof SessionFilterSchema>;
export type Provider = ListProvidersResponse_Provider;
export type Ending = ListEndingsResponse_Ending;

/** The providers whose sessions the operator may see, the operator's own first. */
export const listProviders = async (signal?: AbortSignal): Promise<Provider[]> =>
  (await call(rpc.listProviders, {}, signal)).providers;

/** One page of the sessions of a filter. */
export const searchSessions = (
  purpose: string,
  filter: Filter,
  pageToken: string,
  signal?: AbortSignal,
): Promise<SearchSessionsResponse> =>
  call(rpc.searchSessions, { operator: { purpose }, filter, pageToken }, signal);

/** Ends a part of the sessions of a filter, but never `exceptHandle`. */
export const endFoundSessions = (
  purpose: string,
  filter: Filter,
  exceptHandle: string,
  messageToPerson: string,
): Promise<EndFoundSessionsResponse> =>
  call(rpc.endFoundSessions, { operator: { purpose }, filter, exceptHandle, messageToPerson });

/** Why a person's sessions ended in the last 30 days, the newest first. */
export const listEndings = async (
  purpose: string,
  issuer: string,
  subject: string,
  signal?: AbortSignal,
): Promise<Ending[]> =>
  (await call(rpc.listEndings, { operator: { purpose }, issuer, subject }, signal)).endings;

/** Watches a provider's sessions from now on. The returned function stops the watch. */
export const watchActivity = (
  purpose: string,
  issuer: string,
  reader: StreamReader<Activity>,
): (() => void) => open(rpc.watchActivity, { operator: { purpose }, issuer }, reader);
