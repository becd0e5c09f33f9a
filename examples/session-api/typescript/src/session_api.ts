// A service that uses the session API, in TypeScript on Node. docs/session-api.md explains each function.
//
//   npm ci && npm run build
//   export SESSION_SVC=http://127.0.0.1:50051   # with TLS: SESSION_CA, SESSION_CERT and SESSION_KEY, PEM files
//
//   node dist/session_api.js look-up HANDLE
//   SESSION_ID=… node dist/session_api.js call-api URL SCOPE
//   SESSION_ID=… node dist/session_api.js remember KEY VALUE
//   node dist/session_api.js end-all ISSUER SUBJECT
//   node dist/session_api.js watch
//
// A session ID is a secret: it comes from the environment, because others can read a program's arguments.

import { pathToFileURL } from 'node:url';

import { readFileSync } from 'node:fs';
import { type Client, Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { ErrorInfoSchema } from './gen/google/rpc/error_info_pb.js';
import { SessionService } from './gen/session/v1/session_service_pb.js';

const DEADLINE_MS = 5_000; // for every call
const TOKEN_DEADLINE_MS = 20_000; // the session service may wait for the provider

export type Sessions = Client<typeof SessionService>;

/** One client for the whole program; it connects with the first call. */
export function connect(baseUrl = process.env.SESSION_SVC ?? 'http://127.0.0.1:50051'): Sessions {
  const pem = (name: string) => (process.env[name] ? readFileSync(process.env[name]) : undefined);
  const nodeOptions = { ca: pem('SESSION_CA'), cert: pem('SESSION_CERT'), key: pem('SESSION_KEY') };
  return createClient(SessionService, createGrpcTransport({ baseUrl, nodeOptions, defaultTimeoutMs: DEADLINE_MS }));
}

/** Retries reads and endings if the service was not reached, but no changes: it must not send those twice. */
export async function repeated<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      if (attempt === 3 || ConnectError.from(error).code !== Code.Unavailable) throw error;
      await pause(20 * attempt * (1 + Math.random()));
    }
  }
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** The ErrorInfo of a failure; undefined if the failure does not come from the service. */
export function errorInfo(error: unknown) {
  const details = ConnectError.from(error).findDetails(ErrorInfoSchema);
  return details.find(({ domain }) => domain === 'session.v1');
}

/** Reasons for which only a new sign-in helps. */
const SIGN_IN = [
  'ERR_MISSING_SESSION',
  'ERR_MISSING_ACCESS_TOKEN',
  'ERR_MISSING_REFRESH_TOKEN',
  'ERR_EXPIRED_ACCESS_TOKEN',
  'ERR_FAILED_REFRESH_GRANT',
];

import { Session_State } from './gen/session/v1/session_pb.js';

/** Prints the user of a session. */
export async function lookUp(sessions: Sessions, handle: string): Promise<void> {
  try {
    const { session } = await repeated(() => sessions.getSession({ by: { case: 'handle', value: handle } }));
    const state = session?.state === Session_State.NEEDS_SIGN_IN ? 'has to sign in again before an API can be called' : 'is signed in';
    console.log(`${session?.subject} ${state}`);
  } catch (error) {
    const reason = errorInfo(error)?.reason ?? '';
    // Such as Code.Unavailable: the state is unknown, so this is not "signed out".
    if (!SIGN_IN.includes(reason)) throw error;
    console.log(`no user is signed in: ${reason}`);
  }
}

/** Calls an API for the user. It asks for the token each time: the session service refreshes an expired one. */
export async function callApi(sessions: Sessions, url: string, scope: string): Promise<void> {
  const request = { sessionId: process.env.SESSION_ID ?? '', scopes: [scope] };
  try {
    const { accessToken } = await repeated(() => sessions.getAccessToken(request, { timeoutMs: TOKEN_DEADLINE_MS }));
    const answer = await fetch(url, {
      headers: { authorization: `Bearer ${accessToken}` },
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    console.log(await answer.text());
  } catch (error) {
    const info = errorInfo(error);
    if (info && SIGN_IN.includes(info.reason)) console.log(`sign in again: ${info.reason}`);
    else if (info?.reason === 'ERR_INSUFFICIENT_SCOPE') console.log(`not granted: ${info.metadata.scopes}`);
    else throw error;
  }
}

/**
 * Stores a value with the session. Another caller may change the session between read and write: then the version is
 * stale, and this makes the change again on the current session.
 */
export async function remember(sessions: Sessions, key: string, value: string): Promise<void> {
  const sessionId = process.env.SESSION_ID ?? '';
  for (;;) {
    const { session } = await repeated(() => sessions.getSession({ by: { case: 'sessionId', value: sessionId } }));
    const attributes = JSON.stringify({ ...JSON.parse(session?.attributes || '{}'), [key]: value });
    try {
      await sessions.updateSession({ sessionId, attributes, version: session?.version });
      console.log('remembered');
      return;
    } catch (error) {
      if (errorInfo(error)?.reason !== 'ERR_STALE_VERSION') throw error;
      console.log('another caller changed the session: trying again');
    }
  }
}

/** Lists a user's sessions page by page, and ends them. (`endSessions` ends them all in one call.) */
export async function endAll(sessions: Sessions, issuer: string, subject: string): Promise<void> {
  let pageToken = '';
  do {
    const request = { issuer, subject, pageSize: 100, pageToken };
    const page = await repeated(() => sessions.listSessions(request));
    for (const { handle } of page.sessions) {
      const { ended } = await repeated(() => sessions.endSession({ by: { case: 'handle', value: handle }, cause: Cause.OPERATOR }));
      // It is no failure if another caller has ended the session meanwhile.
      console.log(`${handle} ${ended ? 'ended' : 'was gone'}`);
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
}

import { Cause, SessionEvent_Kind } from './gen/session/v1/session_pb.js';
import { durationMs } from '@bufbuild/protobuf/wkt';

const BEATS = 3; // a stream is dead after this many of its heartbeat intervals without an event
const [PAUSE_MS, PAUSE_MAX_MS] = [50, 5_000]; // between two attempts, doubled each time

/**
 * Prints every ending while the program runs. It opens the stream again when it ends, and continues after the last
 * event. If that is not possible, the service sends MISSED.
 */
export async function watch(sessions: Sessions): Promise<never> {
  let resumeToken = '';
  let first = true;
  for (let wait = PAUSE_MS; ; wait = Math.min(2 * wait, PAUSE_MAX_MS)) {
    const stream = new AbortController();
    let silenceMs = DEADLINE_MS;
    let silence = setTimeout(() => stream.abort(), silenceMs);
    let live = false;
    try {
      // No deadline (0), which would end the stream: silence ends it instead.
      for await (const event of sessions.watchSessions({ resumeToken }, { signal: stream.signal, timeoutMs: 0 })) {
        if (event.heartbeatInterval) silenceMs = BEATS * durationMs(event.heartbeatInterval);
        clearTimeout(silence);
        silence = setTimeout(() => stream.abort(), silenceMs);
        resumeToken = event.resumeToken;
        if (event.kind === SessionEvent_Kind.ENDED) console.log(`ended ${event.handle} CAUSE_${Cause[event.cause] ?? 'OTHER'}`);
        if (event.kind === SessionEvent_Kind.MISSED) console.log('missed: read cached sessions again');
        if (event.kind === SessionEvent_Kind.HEARTBEAT && !live) {
          // The service has sent all earlier events.
          console.log(first ? 'live: read the sessions you need' : 'live again');
          [live, first, wait] = [true, false, PAUSE_MS];
        }
      }
    } catch (error) {
      // The same request fails the same way.
      if (ConnectError.from(error).code === Code.InvalidArgument) throw error;
    }
    clearTimeout(silence);
    if (live) console.log('lost: do not trust cached sessions');
    await pause(wait * (0.5 + Math.random() / 2));
  }
}

async function main(name = '', ...rest: string[]): Promise<void> {
  const [one = '', two = ''] = rest;
  const sessions = connect();
  const tasks: Record<string, () => Promise<void>> = {
    'look-up': () => lookUp(sessions, one),
    'call-api': () => callApi(sessions, one, two),
    remember: () => remember(sessions, one, two),
    'end-all': () => endAll(sessions, one, two),
    watch: () => watch(sessions),
  };
  const task = tasks[name];
  if (!task) throw new Error('look-up HANDLE | call-api URL SCOPE | remember KEY VALUE | end-all ISSUER SUBJECT | watch');
  await task();
}

// Only when this file is the program.
if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main(...process.argv.slice(2));
