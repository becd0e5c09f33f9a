// What fast means here: the goals P1 to P12, which figures of a record tell whether each is held, and for those that are not,
// what the difference is made of and what would close it.
//
// A check names a row of the record and what it may be at most; `of(id)` is the median of another row of the same run. `bound`
// is a pair of rows: the figure, and what the same libraries take with nothing of ours in between.

export const GOALS = [
  {
    id: 'P1', work: 'signed-in request, session known to the edge', goal: '≤ 12 µs', bound: ['P1', 'bound'],
    checks: [{ row: 'P1', atMost: () => 12 }, { row: 'P1 check', atMost: () => 12 }],
    why: 'of the 31,000 instructions of a request (callgrind, user space) a quarter reads the session: an HMAC over the cookie, the look-up, the judgement of its times. A fifth parses and writes HTTP, a twentieth each are security headers, what layers hand on, measures and limits. The kernel’s part is the bound’s too.',
    closes: 'on the same core only what layers hand on in allocations of their own, a twentieth. The goal in microseconds moves with the core; the ratio to the bound does not.',
  },
  {
    id: 'P2', work: 'the same with nothing remembered: edge, one gRPC call, Redis', goal: '≤ 1.0 × bound at 32 connections, ≤ 1.3 × at one', bound: ['P2', 'chain'],
    checks: [{ row: 'P2', atMost: (of) => of('chain') }, { row: 'P2 alone', atMost: (of) => 1.3 * of('chain alone') }],
    why: 'the bound moves bytes; here a session is opened and judged. Of the 66,000 instructions of a read in session-svc (callgrind) a third opens it, half of that for its key and AES-GCM and half for its fields, a tenth writes them into the answer, a sixth is HTTP/2; the edge spends 65,000, of which a tenth decodes the answer and a tenth verifies the cookie. Reads that come together share a call and pay for most of that ([batched reads](decisions/session-api.md#batches)).',
    closes: 'a key that is kept instead of derived for each session, a tenth of session-svc; and a stored form that is the answer’s, a fifth, which would tie the store to the API.',
  },
  {
    id: 'P3', work: 'guarded request passed on, access token attached', goal: '≤ 1.5 × nginx', bound: ['P3', 'nginx'],
    checks: [{ row: 'P3', atMost: (of) => 1.5 * of('nginx') }],
    why: 'nginx copies bytes between two sockets; the edge parses and writes both messages, judges the session, removes and adds headers and attaches a token.',
    closes: 'little that is not the HTTP library.',
  },
  {
    id: 'P4', work: 'a whole sign-in: login and callback', goal: '≤ 1.0 ms',
    checks: [{ row: 'P4', atMost: () => 1 }],
    why: 'see [what a sign-in costs](decisions/measurement.md#cost-of-a-sign-in): no single part of it is large.',
    closes: 'the same page tells, part by part.',
  },
  {
    id: 'P5', work: 'GetSession by another service, server side', goal: '≤ 20 µs with Redis, ≤ 14 µs embedded', bound: ['P5 Redis', 'rpc'],
    checks: [{ row: 'P5 Redis', atMost: () => 20 }, { row: 'P5 embedded', atMost: () => 14 }],
    why: 'the bound moves bytes; a third of a read opens the sealed session, a tenth writes it into the answer (P2).',
    closes: 'as for P2.',
  },
  {
    id: 'P6', work: 'many token requests at one expiry: one grant, p99 wait', goal: '≤ the provider’s time + 50 ms',
    checks: [50, 1000].map((count) => ({ row: `P6 ${count}`, atMost: (of) => of(`P6 ${count} provider`) + 50 })),
  },
  {
    id: 'P7', work: 'a session that ended is refused everywhere', goal: 'p99 ≤ 50 ms, ≤ 1 s with streams cut',
    checks: [{ row: 'P7', atMost: () => 50 }, { row: 'P7 all hang', atMost: () => 1000 }, { row: 'P7 one hangs', atMost: () => 1000 }],
  },
  {
    id: 'P8', work: 'memory: of a session in Redis, of both services', goal: '≤ 1,300 bytes; ≤ 25 MiB at rest, ≤ 60 MiB loaded',
    checks: [
      ...['P8 bytes', 'P8 bytes of most'].map((row) => ({ row, atMost: () => 1300 })),
      ...['edge', 'session'].flatMap((name) => [{ row: `P8 ${name} at rest`, atMost: () => 25 }, { row: `P8 ${name} loaded`, atMost: () => 60 }]),
    ],
    why: 'a session holds its ID token for the provider’s logout, and stands in a list by person and one by provider session; lists share 65,536 sets, each of which is a key of its own at a hundred thousand sessions and costs little at a million ([scaling](scaling.md)).',
    closes: '`EDGE_STORE_ID_TOKEN=false`, where the provider’s logout needs no hint: 450 bytes less.',
  },
  {
    id: 'P9', work: 'growth: what P2 costs more, and what listing costs, from a hundredth of the sessions to all', goal: '≤ 15 % of P2; listing ≤ 1.15 ×',
    checks: [
      ...[['Redis', 'P2'], ['embedded', 'P2 file']].map(([store, row]) => ({ row: `P9 more ${store}`, atMost: (of) => 0.15 * of(row) })),
      ...['list Redis', 'list embedded'].map((what) => ({ row: `P9 ${what}`, atMost: () => 1.15 })),
    ],
    why: 'no operation walks over sessions. What grows is what the processor no longer finds in its caches: the hash table of Redis, and a level of the embedded store’s tree for each hundredfold.',
    closes: 'nothing in a program.',
  },
  {
    id: 'P10', work: 'cold start to ready; size of a program; the session cookie', goal: '≤ 50 ms; ≤ 20 MB; ≤ 120 bytes',
    checks: [
      ...['P10 edge', 'P10 session'].map((row) => ({ row, atMost: () => 50 })),
      ...['P10 auth-edge', 'P10 session-svc'].map((row) => ({ row, atMost: () => 20 })), { row: 'P10 cookie', atMost: () => 120 },
    ],
  },
  {
    id: 'P11', work: 'p99 at 1,000 requests a second, of P1 and P2', goal: '≤ 1.5 × bound', bound: ['P11 P1', 'P11 bound'],
    checks: [{ row: 'P11 P1', atMost: (of) => 1.5 * of('P11 bound') }, { row: 'P11 P2', atMost: (of) => 1.5 * of('P11 chain') }],
    why: 'generator, edge, session service and Redis share the cores: a request waits for whoever runs.',
    closes: 'a core for each.',
  },
  {
    id: 'P12', work: 'web app: script of a first load, and from a click to its picture', goal: '≤ 120 kB; ≤ 100 ms',
    checks: [{ row: 'P12 script', atMost: () => 120 }, { row: 'P12 click', atMost: () => 100 }],
  },
];
