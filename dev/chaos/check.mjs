// Judges a history. A pure function, which also accepts a saved history.
//
//   node dev/chaos/check.mjs target/chaos/7/history.jsonl
import { readHistory } from './history.mjs';
import disabled from './rules/disabled.mjs';
import growth from './rules/growth.mjs';
import honoured from './rules/honoured.mjs';
import mixedUp from './rules/mixed-up.mjs';
import needsSignIn from './rules/needs-sign-in.mjs';
import oneGrant from './rules/one-grant.mjs';
import recovery from './rules/recovery.mjs';
import signedOut from './rules/signed-out.mjs';
import staleToken from './rules/stale-token.mjs';
import unavailable from './rules/unavailable.mjs';
import { saysAlive, saysOver } from './answers.mjs';
import { refreshesOf } from './grants.mjs';
import { sessionsOf } from './sessions.mjs';

const EXCUSES_NOTHING = ['new-keys']; // a key change excuses no error

export const RULES = [signedOut, honoured, oneGrant, needsSignIn, staleToken, mixedUp, unavailable, recovery, disabled, growth];

/** The violations of a history in order, each with its rule; and figures about its content. */
export function judge(events) {
  const of = (type) => events.filter((event) => event.type === type);
  const faults = of('fault').filter(({ kind }) => !EXCUSES_NOTHING.includes(kind));
  const run = { events, topology: of('run')[0]?.topology, sessions: sessionsOf(events), faults, stalls: of('stall') };
  const violations = RULES.flatMap((rule) => rule.find(run).map((violation) => ({ rule: rule.name, ...violation })));
  const requests = of('request');
  const refreshes = [...refreshesOf(events).values()].flat().filter(({ kind, grantType }) => kind === 'granted' && grantType === 'refresh_token');
  return {
    violations: violations.sort((one, other) => one.at - other.at),
    counts: {
      faults: of('fault').length, requests: requests.length, alive: requests.filter(saysAlive).length, over: requests.filter(saysOver).length,
      refused: requests.filter(({ status, grpc }) => status >= 500 || status === 0 || grpc === 14).length,
      sessions: run.sessions.size, endings: [...run.sessions.values()].filter(({ endings }) => endings.some(({ end }) => end)).length, refreshes: refreshes.length,
      recoveryMs: Math.round(Math.max(0, ...of('recovery').map(({ begin, end }) => end - begin))), stalledMs: Math.round(of('stall').reduce((sum, { begin, end }) => sum + end - begin, 0)),
    },
  };
}

if (import.meta.filename === process.argv[1]) {
  const events = readHistory(process.argv[2]);
  const began = events.find(({ type }) => type === 'run')?.begin ?? 0;
  const { violations, counts } = judge(events);
  process.stdout.write(`${JSON.stringify(counts)}\n`);
  for (const { rule, text, at, event } of violations) process.stdout.write(`${rule} at ${((at - began) / 1_000).toFixed(2)} s: ${text}\n  ${JSON.stringify(event)}\n`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
