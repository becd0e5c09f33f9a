// Tests the checker with handwritten histories: a valid one, and for each rule what it must find and must accept.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { judge, RULES } from '../../chaos/check.mjs';

const ADA = 'ada';
const request = (kind, begin, more = {}) => ({ type: 'request', kind, edge: 'edge', who: ADA, session: 's1', status: 200, begin, end: begin + 10, ...more });
const signIn = (begin, set, code, more = {}) => request('sign-in', begin, { session: undefined, status: 302, returned: begin + 2, set, code, ...more });
const me = (begin, more = {}) => request('me', begin, { sub: more.who ?? ADA, ...more });
const over = (begin, more = {}) => request('me', begin, { status: 204, ...more });
const app = (begin, token, more = {}) => request('app', begin, { sub: more.who ?? ADA, handle: `handle of ${more.session ?? 's1'}`, token, ...more });
const fault = (kind, begin, end, more = {}) => ({ type: 'fault', kind, begin, end, ...more });
const granted = (at, grantType, more) => ({ type: 'provider', kind: 'granted', at, grantType, grant: 'g1', account: ADA, sid: 'p1', ...more });
const first = granted(1_005, 'authorization_code', { code: 'c1', access: 't1', refresh: 'r1' });
const refresh = (at, from, to, more = {}) => granted(at, 'refresh_token', { presented: `r${from}`, access: `t${to}`, refresh: `r${to}`, ...more });

const figures = { descriptors: 30, bytes: 50 << 20 };
const looked = [
  { type: 'recovery', begin: 90_000, end: 90_100, ok: true }, { type: 'left', who: 'alan', begin: 93_000, end: 95_000, ok: true },
  { type: 'growth', name: 'edge', at: 99_000, before: figures, after: figures }, { type: 'keys', at: 99_000, keys: { 'e!': 1, m: 3, s: 2 } },
];
const begun = [first, signIn(1_000, 's1', 'c1'), app(2_000, 't1')];
const WELL = [...begun, refresh(6_000, 1, 2), app(6_500, 't2'), request('sign-out', 7_000, { status: 302, set: 'cleared' }), me(7_500), over(8_100)];

const rulesBroken = (...events) => [...new Set(judge([...events, ...looked]).violations.map(({ rule }) => rule))];
const holds = (name, ...events) => test(name, () => assert.deepEqual(judge([...events, ...looked]).violations, []));
const breaks = (rule, name, ...events) => test(`${rule}: ${name}`, () => {
  assert.ok(RULES.some(({ name: known }) => known === rule));
  assert.deepEqual(rulesBroken(...events), [rule]);
});

holds('nothing is wrong with a session that is used, refreshed and signed out', ...WELL);
test('the figures of a history are counted', () => {
  const { counts } = judge([...WELL, ...looked]);
  assert.deepEqual([counts.sessions, counts.endings, counts.refreshes, counts.alive, counts.over], [1, 1, 1, 3, 1]);
});

// no user is signed out without a cause
breaks('signed-out', 'an answer says over, without an ending', ...begun, over(3_000));
breaks('signed-out', 'it says so before the ending began', ...begun, over(3_000), request('operator-ends', 4_000, { grpc: 0, edge: undefined, status: undefined }));
breaks('signed-out', 'the cookie is cleared', ...begun, me(3_000, { set: 'cleared' }));
breaks('signed-out', 'a sign-in that is refused takes the session the browser has', ...begun,
  fault('cut', 2_900, 3_100, { from: 'edge', to: 'idp' }), request('sign-in', 3_000, { status: 400, returned: 3_005, code: 'c2' }), over(4_000));
holds('an ending that was not answered is a cause', ...begun, fault('cut', 2_900, 3_100, { from: 'browser', to: 'edge' }), request('sign-out', 3_000, { status: 0 }), over(4_000));
holds('what another browser of the same person ends', ...begun, signIn(1_500, 's2', 'c2'), granted(1_505, 'authorization_code', { code: 'c2', grant: 'g2', sid: 'p2', access: 't9' }),
  request('end-others', 3_000, { session: 's2', grpc: 0 }), over(3_100));
breaks('signed-out', 'what another person ends', ...begun, signIn(1_500, 's2', 'c2', { who: 'grace' }), request('end-others', 3_000, { session: 's2', who: 'grace', grpc: 0 }), over(3_100));
holds('a session that began after everything was ended stays', request('operator-ends-all', 500, { grpc: 0, session: undefined, edge: undefined, status: undefined }), ...begun, me(5_000));

// an ended session stays ended
breaks('honoured', 'by an edge, for longer than the bound', ...begun, request('sign-out', 3_000, { status: 302 }), me(4_011));
breaks('honoured', 'after the provider was answered', ...begun, { type: 'provider', kind: 'told', at: 3_000, sid: 'p1' }, me(4_001));
breaks('honoured', 'after an answer called it over', ...begun, request('operator-ends', 2_900, { grpc: 14, edge: undefined, status: undefined }), fault('kill', 2_800, 2_950, { target: 'redis' }), over(3_000), me(4_100));
breaks('honoured', 'by a cookie that comes late', ...begun, request('sign-out', 3_000, { status: 302 }), request('me', 4_100, { status: 204, set: 's1' }));
breaks('honoured', 'a session that another one took the place of', ...begun, request('sign-in', 3_000, { status: 302, returned: 3_005, set: 's2', code: 'c2' }), me(4_100));

const endsAll = (begin) => request('operator-ends-all', begin, { grpc: 0, session: undefined, edge: undefined, status: undefined });
const slowly = [first, fault('hold', 1_010, 4_000, { from: 'edge', to: 'session' }), signIn(1_000, 's1', 'c1', { end: 4_100 })];
breaks('honoured', 'a session whose person was signed out while it was being created', ...slowly, endsAll(2_500), me(4_200));
holds('a session that may have been created after its person was signed out', ...slowly, endsAll(1_500), me(4_200));

// one grant per expiry, and later requests see its result
breaks('one-grant', 'twice within an expiry', ...begun, refresh(6_000, 1, 2), refresh(6_400, 2, 3));
holds('a clock that is ahead', ...begun, refresh(6_000, 1, 2), fault('clock', 6_100, 7_000, { target: 'session', ms: 4_000 }), refresh(6_400, 2, 3));
breaks('one-grant', 'a refresh token twice', ...begun, refresh(6_000, 1, 2), { type: 'provider', kind: 'refused', at: 6_050, grantType: 'refresh_token', presented: 'r1', error: 'invalid_grant' });
holds('after the holder was killed there may be one more', ...begun, refresh(6_000, 1, 2), fault('kill', 6_001, 6_300, { target: 'session' }), refresh(6_400, 2, 3));
breaks('one-grant', 'a fault that has nothing to do with it is no excuse', ...begun, refresh(6_000, 1, 2), fault('cut', 6_001, 6_300, { from: 'edge', to: 'session' }), refresh(6_400, 2, 3));
const withoutToken = (begin) => request('app', begin, { status: 401, error: 'ERR_FAILED_REFRESH_GRANT' });
breaks('needs-sign-in', 'tokens that are gone', ...begun, withoutToken(6_000));
holds('tokens that a killed process took with it', ...begun, fault('kill', 5_900, 6_100, { target: 'session-2' }), withoutToken(7_000));
const refusal = (at, presented) => ({ type: 'provider', kind: 'refused', at, grantType: 'refresh_token', presented, error: 'invalid_grant' });
const disabled = (at) => ({ type: 'disabled', who: ADA, at });
breaks('needs-sign-in', 'a session that the provider refused and that ended', ...begun, refusal(6_000, 'r1'), over(6_100));
holds('a refusal after a process was killed', ...begun, fault('kill', 5_900, 6_100, { target: 'session-2' }), refusal(7_000, 'r1'), over(7_100));
holds('an account that was disabled', ...begun, disabled(5_000), refusal(6_000, 'r1'), over(6_100));
breaks('signed-out', 'another account was disabled', ...begun, { ...disabled(2_500), who: 'grace' }, over(3_000));
breaks('disabled', 'a session that stays', ...begun, { type: 'left', who: 'alan', begin: 93_000, end: 183_000, ok: false });
breaks('stale-token', 'an older token after a newer one', ...begun, refresh(6_000, 1, 2), app(6_100, 't2'), app(7_200, 't1'));

// no user receives another user's data
breaks('mixed-up', 'another person', ...begun, me(3_000, { sub: 'grace' }));
const second = [granted(1_105, 'authorization_code', { code: 'c2', grant: 'g2', sid: 'p2', access: 't9', refresh: 'r9' }), signIn(1_100, 's2', 'c2')];
breaks('mixed-up', 'the same person, another session', ...begun, ...second, app(3_000, 't9', { session: 's2', handle: 'handle of s1' }));
breaks('mixed-up', 'a token of another session', ...begun, ...second, app(3_000, 't1', { session: 's2' }));
breaks('mixed-up', 'a cookie of another session', ...begun, ...second, me(3_000, { set: 's2' }));

// unanswerable requests receive a clear 503, and only until recovery
const away = (begin, more = {}) => request('me', begin, { status: 503, retryAfter: true, error: 'ERR_SESSION_SERVICE_UNAVAILABLE', ...more });
breaks('unavailable', 'while nothing is broken', ...begun, away(3_000));
breaks('unavailable', 'while keys change', ...begun, fault('new-keys', 2_900, 4_000), away(3_000));
holds('while something is', ...begun, fault('stop', 2_900, 4_000, { target: 'redis' }), away(3_000), away(8_900));
breaks('unavailable', 'for longer than the recovery takes', ...begun, fault('stop', 2_900, 4_000, { target: 'redis' }), away(9_100));
holds('while the machine keeps no deadline', ...begun, { type: 'stall', begin: 20_000, end: 20_500 }, away(22_000));
breaks('unavailable', 'though the machine stalled a little', ...begun, { type: 'stall', begin: 20_000, end: 20_300 }, away(22_000));
holds('longer by what the machine stalled', ...begun, fault('stop', 2_900, 4_000, { target: 'redis' }), { type: 'stall', begin: 5_000, end: 5_200 }, away(9_100));
const refusedAt = (begin) => request('sign-in', begin, { session: undefined, status: 400, returned: begin + 2, code: 'c9', end: begin + 300 });
breaks('unavailable', 'a sign-in is refused', ...begun, refusedAt(3_000));
holds('a sign-in of a user who is signed out everywhere meanwhile', ...begun, refusedAt(3_000), request('operator-ends-all', 3_100, { grpc: 0, session: undefined, edge: undefined, status: undefined }));
breaks('unavailable', 'at an edge that has nothing to do with it', ...begun, fault('cut', 2_900, 4_000, { from: 'browser', to: 'edge-2' }), away(3_000));
breaks('unavailable', 'without Retry-After', ...begun, fault('stop', 2_900, 4_000, { target: 'redis' }), away(3_000, { retryAfter: undefined }));
breaks('unavailable', 'with another status', ...begun, fault('stop', 2_900, 4_000, { target: 'redis' }), away(3_000, { status: 500 }));
breaks('unavailable', 'too late', ...begun, me(3_000, { end: 13_100 }));
breaks('recovery', 'too late', ...begun, { type: 'recovery', begin: 90_000, end: 95_100, ok: true });
breaks('recovery', 'never', ...begun, { type: 'recovery', begin: 90_000, end: 91_000, ok: false });

// the resources that remain
const grown = (more) => ({ type: 'growth', name: 'edge', at: 99_000, before: figures, after: { ...figures, ...more } });
breaks('growth', 'descriptors', ...begun, grown({ descriptors: 90 }));
breaks('growth', 'memory', ...begun, grown({ bytes: 500 << 20 }));
breaks('growth', 'entries of an index', ...begun, { type: 'keys', at: 99_000, keys: { 'e!': 1, o: 1 } });
breaks('growth', 'a session', ...begun, { type: 'keys', at: 99_000, keys: { 'e!': 1, 's+': 1 } });
breaks('growth', 'a key that never expires', ...begun, { type: 'keys', at: 99_000, keys: { 'e!': 1, 'm!': 1 } });
test('recovery, disabled, growth: the run recorded nothing', () => assert.deepEqual([...new Set(judge(begun).violations.map(({ rule }) => rule))], ['recovery', 'disabled', 'growth']));
