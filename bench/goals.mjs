// The performance goals P1 to P12, the figures that show whether each is held, and for missed
// goals the causes and what would close the difference.
//
// A check names a row of the record and its largest allowed value; `of(id)` is the median of another row of the run.
// `bound` is a pair of rows: the figure, and the figure of the same libraries without code of ours.

export const GOALS = [
  {
    id: 'P1', work: 'signed-in request, session known to the edge', goal: '≤ 1.25 × bound', bound: ['P1', 'bound'],
    checks: ['P1', 'P1 check'].map((row) => ({ row, atMost: (of) => 1.25 * of('bound') })),
    why: 'a request takes 31,000 instructions: a quarter reads the session, a fifth parses and writes HTTP.',
    closes: 'fewer allocations between layers, a twentieth.',
  },
  {
    id: 'P2', work: 'the same without the edge’s cache: edge, one gRPC call, Redis', goal: '≤ 1.15 × bound at 32 connections, ≤ 1.3 × at one', bound: ['P2', 'chain'],
    checks: [{ row: 'P2', atMost: (of) => 1.15 * of('chain') }, { row: 'P2 alone', atMost: (of) => 1.3 * of('chain alone') }],
    why: 'the bound only moves bytes; the programs also decrypt and check a session. Concurrent reads share a call ([batches](decisions/session-api.md#batches)).',
    closes: 'a cached key, a tenth of session-svc, and stored sessions in the format of the answer, a fifth.',
  },
  {
    id: 'P3', work: 'guarded request passed on, access token attached', goal: '≤ 1.5 × nginx', bound: ['P3', 'nginx'],
    checks: [{ row: 'P3', atMost: (of) => 1.5 * of('nginx') }],
    why: 'nginx copies bytes between two sockets; the edge parses and writes both messages, checks the session, removes and adds headers and attaches a token.',
    closes: 'little outside the HTTP library.',
  },
  {
    id: 'P4', work: 'a whole sign-in: login and callback', goal: '≤ 1.2 ms one after another, ≤ 0.9 ms sixteen at once; ≤ 0.9 ms in the one program',
    checks: [{ row: 'P4', atMost: () => 1.2 }, { row: 'P4 at once', atMost: () => 0.9 }, { row: 'one sign-in', atMost: () => 0.9 }],
    why: 'see [what a sign-in costs](decisions/measurement.md#cost-of-a-sign-in): no single part is large.',
    closes: 'the same page says, part by part.',
  },
  {
    id: 'P5', work: 'GetSession by another service, server side', goal: '≤ 20 µs with Redis, ≤ 14 µs embedded', bound: ['P5 Redis', 'rpc'],
    checks: [{ row: 'P5 Redis', atMost: () => 20 }, { row: 'P5 embedded', atMost: () => 14 }],
    why: 'the bound only moves bytes; a third of a read decrypts the session, a tenth writes it into the answer (P2).',
    closes: 'as for P2.',
  },
  {
    id: 'P6', work: 'many token requests at one expiry: one grant, p99 wait', goal: '≤ the provider’s time + 50 ms',
    checks: [50, 1000].map((count) => ({ row: `P6 ${count}`, atMost: (of) => of(`P6 ${count} provider`) + 50 })),
  },
  {
    id: 'P7', work: 'every edge refuses an ended session', goal: 'p99 ≤ 50 ms, ≤ 1 s with streams cut',
    checks: [{ row: 'P7', atMost: () => 50 }, { row: 'P7 all hang', atMost: () => 1000 }, { row: 'P7 one hangs', atMost: () => 1000 }],
  },
  {
    id: 'P8', work: 'memory: of a session in Redis, of both services', goal: '≤ 1,400 bytes; ≤ 25 MiB at rest, ≤ 60 MiB loaded',
    checks: [
      ...['P8 bytes', 'P8 bytes of most'].map((row) => ({ row, atMost: () => 1400 })),
      ...['edge', 'session'].flatMap((name) => [{ row: `P8 ${name} at rest`, atMost: () => 25 }, { row: `P8 ${name} loaded`, atMost: () => 60 }]),
    ],
    why: 'a session holds its ID token and is in two lists, which cost less for each session at a million ([scaling](scaling.md)).',
    closes: '`EDGE_STORE_ID_TOKEN=false`: 450 bytes less.',
  },
  {
    id: 'P8 idle', work: 'memory of an unused connection after ten seconds, of an account page', goal: '≤ 8 KiB over HTTP/1.1, ≤ 16 KiB over HTTP/2; a page ≤ 24 KiB',
    checks: [['P8 idle', 8], ['P8 idle HTTP/2', 16], ['P8 page', 24]].map(([row, most]) => ({ row, atMost: () => most })),
    why: 'HTTP/2 keeps its buffers and header tables; a page keeps those of both connections and of the gRPC libraries ([idle connections](decisions/measurement.md#idle-connections)).',
    closes: 'smaller buffers in h2, tonic and tonic-web, which have no setting.',
  },
  {
    id: 'P9', work: 'growth: the added cost of P2 and of listing, from a hundredth of the sessions to all', goal: '≤ 15 % of P2; listing ≤ 1.15 ×',
    checks: [
      ...[['Redis', 'P2'], ['embedded', 'P2 file']].map(([store, row]) => ({ row: `P9 more ${store}`, atMost: (of) => 0.15 * of(row) })),
      ...['list Redis', 'list embedded'].map((what) => ({ row: `P9 ${what}`, atMost: () => 1.15 })),
    ],
    why: 'no operation iterates over all sessions, but cache misses of the processor grow. A list of the embedded store also reads up to three pages outside its cache ([growth](decisions/embedded-store.md#growth)).',
    closes: 'memory for the whole file closes half of it, nothing the rest.',
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
    why: 'generator, edge, session service and Redis share the cores: a request waits until another program yields.',
    closes: 'a core for each.',
  },
  {
    id: 'P12', work: 'web app: script of a first load, and from a click to its next frame', goal: '≤ 120 kB; ≤ 100 ms',
    checks: [{ row: 'P12 script', atMost: () => 120 }, { row: 'P12 click', atMost: () => 100 }],
  },
];
