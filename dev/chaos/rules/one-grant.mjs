// One grant per expiry: by the provider's own log, a session's tokens are refreshed no sooner than they expire, and no refresh token is used
// twice. A fault between the provider's answer and the store can cost one more, as docs/architecture.md says ("A gap that cannot be closed").
import { faultsWithin, isOfStore, isOverloaded, touches } from '../excuses.mjs';
import { refreshesOf } from '../grants.mjs';
import { TOKEN_MARGIN_S, TOKEN_TTL_S } from '../world.mjs';

const GOOD_MS = (TOKEN_TTL_S - TOKEN_MARGIN_S) * 1_000;
const SHORTER_MS = 2_000; // expiries are whole seconds, rounded down, and count from a request that a busy machine keeps waiting

/**
 * Faults that may cost a grant or a refresh token: of who asks, who answers, who keeps. What is only late loses nothing, nor does a clock
 * within its bound, a store without room, or a process that is told to stop, for it finishes what it does.
 */
export const mayLoseTokens = (fault) => (touches(fault, ['session', 'session-2', 'idp']) || isOfStore(fault))
  && !['edge', 'edge-2'].includes(fault.from) && fault.to !== 'url'
  && !['restart-all', 'delay', 'slow-provider', 'clock', 'full-memory', 'full-disk'].includes(fault.kind) && !(fault.kind === 'restart' && fault.target !== 'idp');

const LEASE_MS = 5_000; // a holder that stood still for longer than its lease may come late
const EXCHANGE_MS = 6_000; // the longest exchange with the provider while no fault holds it up

/**
 * Whether tokens were good for less. Lifetimes count from the request, so that a provider whose answer takes long shortens them; and from a clock
 * that is ahead, what is left of them is less. (A margin of sixty seconds, the default, is more than either.)
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
