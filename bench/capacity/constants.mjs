// What the arithmetic of `make capacity` begins with: each figure with what it was measured by. FIGURES stands for
// `cargo run --release --example store_figures`.

const FIGURES = 'store_figures';

export const CONSTANTS = {
  sealedBytes: { value: 838, unit: 'bytes', of: 'a usual session as it is sealed', by: `${FIGURES}: "of … sealed"` },
  frameBytes: { value: 62, unit: 'bytes', of: 'the frame around it, which names two lists', by: 'session-svc/src/store/codec.rs' },
  eventBytes: { value: 220, unit: 'bytes', of: 'an event in its stream', by: `${FIGURES}: "e: … bytes a key" by the events it keeps` },
  baseBytes: { value: 3_000_000, unit: 'bytes', of: 'a server without sessions, with its connections and buffers', by: 'INFO memory' },
  loadMicros: { value: 12, unit: 'µs', of: 'Redis for a read that comes alone', by: `${FIGURES}: "load"` },
  createMicros: { value: 45, unit: 'µs', of: 'Redis for a creation', by: `${FIGURES}: "create"` },
  rollMicros: { value: 61, unit: 'µs', of: 'Redis for a roll: its read and its write', by: `${FIGURES}: "roll"` },
  listMicros: { value: 44, unit: 'µs', of: 'Redis for a page of a list and its records', by: `${FIGURES}: "list"` },
  endMicros: { value: 29, unit: 'µs', of: 'Redis for an ending', by: `${FIGURES}: "end"` },
  heardMicros: { value: 15, unit: 'µs', of: 'Redis for one replica that reads one event alone', by: 'store_figures: "load", with the reply of XREAD' },
  togetherMicros: { value: 2.1, unit: 'µs', of: 'Redis for a read, or an event, that comes with others', by: `${FIGURES}: "load, 32 callers"` },
  askedMicros: { value: 25.5, unit: 'µs', of: 'a session service for one read', by: 'make bench: P5' },
  toldMicros: { value: 2.6, unit: 'µs', of: 'a session service for telling one edge of one event', by: 'cargo run --release --example watches, with 64 of them' },
  proxiedMicros: { value: 38.5, unit: 'µs', of: 'an edge for a request it passes on', by: 'make bench: P3' },
  failoverSecs: { value: 4, unit: 's', of: 'a shard without a master, cluster-node-timeout 2 s', by: 'make failover' },
};

// What is taken for granted of people, and how full things may be. All of it can be given: `make capacity SESSIONS=… REQUESTS=… NODE_GIB=32`.
export const ASSUMED = {
  requestsEach: { value: 0.2, of: 'requests a second of a person who is there' },
  signInsADay: { value: 1, of: 'sign-ins a day for each session alive' },
  endedByChoice: { value: 0.3, of: 'sessions that are ended and do not expire' },
  cacheSecs: { value: 5, of: 'EDGE_SESSION_CACHE_SECS' },
  rollSecs: { value: 60, of: 'SESSION_ROLL_INTERVAL' },
  tokenSecs: { value: 300, of: 'seconds an access token lasts' },
  nodeGib: { value: 16, of: 'GiB of maxmemory of a Redis node' },
  full: { value: 0.8, of: 'of maxmemory, and of the sets of lists, in use' },
  busy: { value: 0.5, of: 'of a core in use, so that a failover or a busy hour finds the rest' },
};

export const values = (table, given = {}) => Object.fromEntries(Object.entries(table).map(([name, { value }]) => [name, Number(given[name] ?? value)]));
