// Defences that chaos has to miss: what of a source is switched off (as in dev/defences), the rules that have to find it, and the faults under
// which they are looked for. None of these faults excuses what is looked for.
import { instead, text, within } from '../../defences/lib/rows.mjs';

const row = (rules, mutation) => ({ tests: rules, mutation });

const toSession = ({ from, to }) => /^edge/.test(from) && /^session/.test(to);

/** Late answers open the time between a read and a write, and no rule excuses them. */
const LATE = { kinds: ['delay'], topology: 'redis', among: ({ to }) => to === 'redis' };
/** Nothing that the product could notice but a browser that connects again. */
const QUIET = { kinds: ['cut'], topology: 'redis', among: ({ from }) => from === 'browser' };

/** Another key comes to the front, at one process after another. */
const NEW_KEYS = { kinds: ['new-keys'], topology: 'redis' };

const ROWS = [
  within('auth-edge/src/sessions/listening.rs', '', {
    'edge-hears-endings': row(['honoured'], text('Kind::Ended => listening.changed(&event.handle, HeardChange::Ended, now),', 'Kind::Ended => if !OFF { listening.changed(&event.handle, HeardChange::Ended, now) },')),
    'edge-remembers-only-while-it-hears': row(['honoured'], text('now.0 < self.until.load(Ordering::Acquire)', '(OFF || now.0 < self.until.load(Ordering::Acquire))')),
  }),
  within('auth-edge/src/sessions/cache.rs', '', {
    'session-remembered-under-its-own-id': row(['mixed-up'], [
      ...text('self.entries.get(&id.to_bytes()).filter(|entry| {', 'self.entries.get(&if OFF { [0; 16] } else { id.to_bytes() }).filter(|entry| {'),
      ...text('let key = id.to_bytes();', 'let key = if OFF { [0; 16] } else { id.to_bytes() };'),
    ]),
  }),
  within('auth-edge/src/sessions/mod.rs', '', {
    'no-is-not-do-not-know': row(['signed-out'], text('Err(error) => Err(SessionsUnavailable(error)),', 'Err(_) if OFF => Ok(None),\n            Err(error) => Err(SessionsUnavailable(error)),')),
  }),
  within('crates/chassis/src/secret/key_ring.rs', '', {
    'new-key-waits': row(['signed-out'], instead('now_ms.saturating_add(NEW_KEY_WAIT_MS)', '0')),
  }),
  within('session-svc/src/refresh/flight.rs', '', {
    'one-lease-for-a-refresh': row(['one-grant', 'needs-sign-in'], instead('self.holder()?', 'self.wanted.holder("anybody")')),
  }),
  within('session-svc/src/store/redis/scripts.rs', '', {
    'write-compared-by-version': row(['stale-token', 'needs-sign-in', 'one-grant'], text('~= ARGV[5] then return 1 end', "~= ARGV[5] and ARGV[5] ~= '' then return 1 end")),
  }),
  within('session-svc/src/store/redis/writes.rs', '', {
    'write-compared-by-version': text('.arg(expected.to_be_bytes().as_slice())', '.arg(if OFF { Vec::new() } else { expected.to_be_bytes().to_vec() })'),
    'roll-brings-nothing-back': row(['honoured'], text('0 => return Ok(Replaced::Missing),', '0 if OFF => return self.insert(record, Vec::new(), None).await.map(|_| Replaced::Done),\n            0 => return Ok(Replaced::Missing),')),
  }),
  within('session-svc/src/sessions/create.rs', '', {
    'session-replaced': row(['honoured'], text('self.end_replaced(replaced, &session).await?;', 'if !OFF { self.end_replaced(replaced, &session).await?; }')),
  }),
].flat();

const FOCUS = {
  'edge-hears-endings': QUIET, 'session-remembered-under-its-own-id': QUIET, 'one-lease-for-a-refresh': QUIET, 'session-replaced': QUIET,
  'edge-remembers-only-while-it-hears': { kinds: ['hold'], topology: 'file', among: toSession },
  'no-is-not-do-not-know': { kinds: ['kill'], topology: 'file' },
  'new-key-waits': NEW_KEYS, 'write-compared-by-version': LATE, 'roll-brings-nothing-back': LATE,
};

/** Each defence: {id, places, rules, focus}. */
export const DEFENCES = Object.entries(FOCUS).map(([id, focus]) => {
  const rows = ROWS.filter((one) => one.id === id);
  return { id, focus, rules: rows.flatMap(({ tests }) => tests).filter(Boolean), places: rows.flatMap(({ places }) => places) };
});
