// What everybody may rely on while something happens to the pods. A run breaks an event whose line it does not keep; the table of
// docs/kubernetes/pods.md is made of these lines and of what the last run found.
//
//   failed      requests that may fail; `some` where people are refused for a moment, and `refusedMs` is what one person may wait
//   refusedMs   the longest time in which one person may be refused, from the first failed request to the next good one
//   lost        sessions of people who did not sign out that may be gone: none, ever
//   honouredMs  how long after an acknowledged sign-out any edge may still let that person in (docs/operating.md)
//   undone      acknowledged sign-outs that may be undone: none, ever
//   because     where it is promised

export const ALWAYS = { lost: 0, honouredMs: 1_000, undone: 0 };

const PLANNED = { failed: 0, because: 'nothing that is planned refuses anybody: pods are drained, and there is always another' };
const UNNOTICED = { failed: 0, because: 'nobody is refused while another replica is there' };
const HANDED_OVER = { failed: 'some', refusedMs: 3_000, because: 'a planned failover of Redis refuses for two seconds at most (docs/operating.md), and a client that has waited for it' };
const REPLACED = { failed: 'some', refusedMs: 12_000, because: 'the Sentinels replace a master that is gone after down-after-milliseconds, 4 s here, and an election' };
const DOWN = (ms) => ({ failed: 'some', refusedMs: ms, because: 'it is away; nobody is signed out, nobody gets in, and all is well as soon as it is back' });
const KILLED = { failed: 'some', refusedMs: 2_000, because: 'what the killed process was answering, and new connections until the Service leads elsewhere or the container runs again' };

export const CONTRACT = {
  'nothing at all': PLANNED,
  'rolling restart of edge': PLANNED,
  'rolling restart of session-svc': PLANNED,
  'rolling restart of web': PLANNED,
  'rolling restart of operator': PLANNED,
  'rolling restart of redis': HANDED_OVER,
  'rolling restart of redis-sentinel': PLANNED,
  'rolling restart of all at once': HANDED_OVER,
  'kill -9 of edge': KILLED,
  'kill -9 of session-svc': UNNOTICED,
  'kill -9 of web': KILLED,
  'kill -9 of the master of Redis': REPLACED,
  'kill -9 of a replica of Redis': UNNOTICED,
  'kill -9 of a Sentinel': UNNOTICED,
  'eviction of an edge': PLANNED,
  'eviction of a session-svc': PLANNED,
  'eviction of the master of Redis': HANDED_OVER,
  'eviction of a replica of Redis': UNNOTICED,
  'failover of Redis': HANDED_OVER,
  'a frozen master of Redis': REPLACED,
  'all of Redis and its Sentinels restarted at once': DOWN(90_000),
  'a node lost, the master of Redis and one of everything else on it': { failed: 'some', refusedMs: 65_000, because: 'until Kubernetes misses the node, after 50 s, Services lead new connections to its pods, and who asks there waits for ten more' },
  'certificate of session-svc': PLANNED,
  'certificate of edge to session-svc': PLANNED,
  'certificate of operator to session-svc': PLANNED,
  'certificates of Redis and its Sentinels': PLANNED,
  'certificate of session-svc to Redis': PLANNED,
  'authority of all certificates': PLANNED,
  'EDGE_SECRET': PLANNED,
  'encryption key, with rekey': PLANNED,
  'passwords of Redis': PLANNED,
  'scaling edge 2 to 4 to 2': PLANNED,
  'scaling session-svc 2 to 4 to 2': PLANNED,
  'scaling web 2 to 4 to 2': PLANNED,
  'provider down': { failed: 0, because: 'who is signed in notices nothing (docs/operating.md); signing in is an honest error meanwhile' },
  'one session-svc cut off from the edges': { failed: 0, because: 'every request asks the others: slower, not wrong (docs/operating.md)' },
  'every session-svc cut off from the edges': DOWN(15_000),
  'one session-svc cut off from Redis': { failed: 'some', refusedMs: 8_000, because: 'until its readiness goes off and the edges have heard of it' },
  'every session-svc cut off from Redis': DOWN(20_000),
  'session-svc cut off from the Sentinels': { failed: 0, because: 'a master that acknowledges through all its replicas is used (docs/operating.md)' },
  'the master of Redis cut off from everybody': REPLACED,
  'the master of Redis cut off from its replicas and Sentinels': { ...REPLACED, because: 'a sign-out is acknowledged when a replica has it (SESSION_ENDING_REPLICAS), and the Sentinels replace the master' },
  'a replica of Redis cut off from the master': UNNOTICED,
  'one web cut off from the edges': { failed: 'some', refusedMs: 12_000, because: 'a Service leads to it for as long as it calls itself ready' },
  'edges cut off from the provider': { failed: 0, because: 'who is signed in notices nothing' },
  'session-svc cut off from the provider': { failed: 0, because: 'who is signed in notices nothing until a token needs refreshing' },
  'upgrade: session-svc first, then edge': PLANNED,
  'upgrade: edge first, then session-svc': PLANNED,
  'roll-back of everything': PLANNED,
};

/** What an event did not keep of its line. */
export function complaints(name, { failed, longestRefusalMs, lost, honouredMs, undone, overran }) {
  const line = { ...ALWAYS, ...CONTRACT[name] };
  return [
    line.failed !== 'some' && failed > line.failed && `${failed} failed requests`,
    line.failed === 'some' && longestRefusalMs > line.refusedMs && `somebody was refused for ${longestRefusalMs} ms`,
    lost > line.lost && `${lost} sessions lost`,
    honouredMs > line.honouredMs && `a session was honoured for ${Math.round(honouredMs)} ms after its end`,
    undone > line.undone && `${undone} endings undone`,
    overran.length > 0 && `had to be killed: ${overran.join(', ')}`,
  ].filter(Boolean);
}
