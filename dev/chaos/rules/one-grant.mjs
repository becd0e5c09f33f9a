// One grant per expiry: in the provider's log, a session's tokens are refreshed only once they expire, and no refresh
// token is used twice. A fault at the store can cost one more (docs/architecture.md, "A gap that cannot be closed").
import { faultsWithin, isOfStore, isOverloaded, touches } from '../excuses.mjs';
import { refreshesOf } from '../grants.mjs';
import { TOKEN_MARGIN_S, TOKEN_TTL_S } from '../world.mjs';

const GOOD_MS = (TOKEN_TTL_S - TOKEN_MARGIN_S) * 1_000;
const SHORTER_MS = 2_000; // expiries are rounded down to seconds and count from a possibly delayed request

/**
 * Faults of clients, servers or stores may cost a grant or a refresh token. Delays do not, nor do clocks within
 * their bound, a full store, or a process that is asked to stop, because it finishes its work.
 */
export const mayLoseTokens = (fault) => (touches(fault, ['session', 'session-2', 'idp']) || isOfStore(fault))
  && !['edge', 'edge-2'].includes(fault.from) && fault.to !== 'url'
  && !['restart-all', 'delay', 'slow-provider', 'clock', 'full-memory', 'full-disk'].includes(fault.kind) && !(fault.kind === 'restart' && fault.target !== 'idp');

const LEASE_MS = 5_000; // a holder that stalled for longer than its lease may be late
const EXCHANGE_MS = 6_000; // the longest exchange with the provider without a fault

/**
 * Whether tokens were valid for less time. Lifetimes count from the request, so a slow provider shortens them, and
 * so does a clock that is ahead. (The default margin of sixty seconds is more than either.)
 */
const areShorter = (run, given, line) => isOverloaded(run.stalls, given.at)
  || faultsWithin(run, given.at - EXCHANGE_MS, given.at + EXCHANGE_MS).some((fault) => touches(fault, ['idp']))
  || faultsWithin(run, given.at - EXCHANGE_MS, line.at).some(({ kind }) => kind === 'clock');

export default {
  name: 'one-grant',
  what: 'one refresh grant per expiry, and no refresh token used twice',
  find(run) {
    return [...refreshesOf(run.events)].flatMap(([grant, lines]) => lines.flatMap((line, at) => {
      const before = lines[at - 1];
      const isSoon = before && line.kind === 'granted' && line.at - before.at < GOOD_MS - SHORTER_MS && !areShorter(run, before, line);
      const isRefused = line.kind === 'refused' && lines.slice(0, at).some(({ kind, presented }) => kind === 'granted' && presented === line.presented);
      if (!isSoon && !isRefused) return [];
      const since = before?.at ?? line.at;
      if (faultsWithin(run, since - LEASE_MS, line.at).some(mayLoseTokens)) return [];
      const text = isSoon ? `grant ${grant} is refreshed ${line.at - before.at} ms after its last tokens, which are good for ${GOOD_MS} ms` : `a refresh token of grant ${grant} is used twice`;
      return [{ at: line.at, text, event: line }];
    }));
  },
};
