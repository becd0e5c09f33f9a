// What sessions take in Redis 7: its structures, and the sizes its allocator (jemalloc) gives out. No IO.

const POINTER = 8;
const DICT_ENTRY = 32; // 24 in a class of 32
const OBJECT = 16;
const KEY = 32; // the names of session-svc/src/store/redis/keys.rs
const SLOT_LINKS = 16; // which a cluster keeps for each key
const STRING_HEADER = 6;
const LIST_HEADER = 7;
const MEMBER = 39; // the rest of a list's name, a time, a record's name
const PACKED_ENTRY = MEMBER + 2 + 10; // in a compact list: member and score with their lengths
const SKIP_ENTRY = 48 + 48 + DICT_ENTRY; // in a large set: member, node of the skip list, entry of the table
const LARGE = 128; // members up to which a set is a compact list
const LISTS_EACH = 2; // by person, by provider session

/** The size jemalloc gives for so many bytes: four classes between two powers of two. */
export function allocated(bytes) {
  if (bytes <= 8) return 8;
  if (bytes <= 128) return Math.ceil(bytes / 16) * 16;
  const step = 2 ** (Math.ceil(Math.log2(bytes)) - 3);
  return Math.ceil(bytes / step) * step;
}

const powerOfTwo = (count) => 2 ** Math.ceil(Math.log2(Math.max(count, 4)));

/** A key with an expiry, without its value and the tables' buckets. */
const keyBytes = (isCluster) => KEY + OBJECT + 2 * DICT_ENTRY + (isCluster ? SLOT_LINKS : 0);

/** Sorted sets that all lists share. */
const SETS = 65_536;

/** The entries of all lists. */
export function listBytes({ sessions, isCluster }) {
  const entries = sessions * LISTS_EACH;
  const each = entries / SETS;
  const inUse = SETS * (1 - Math.exp(-each));
  const perSet = entries / inUse;
  if (each > LARGE) return { sets: 2 * inUse, bytes: 2 * entries * (SKIP_ENTRY + 1.5 * POINTER) + 2 * inUse * keyBytes(isCluster) };
  return { sets: inUse, bytes: inUse * (keyBytes(isCluster) + allocated(LIST_HEADER + perSet * PACKED_ENTRY)) };
}

/** Bytes of all masters together. */
export function storeBytes({ sessions, masters, sealedBytes, frameBytes, eventBytes, baseBytes }) {
  const isCluster = masters > 1;
  const record = keyBytes(isCluster) + allocated(sealedBytes + frameBytes + STRING_HEADER);
  const lists = listBytes({ sessions, isCluster });
  const keys = (sessions + lists.sets) / masters;
  const buckets = 2 * powerOfTwo(keys) * POINTER * masters;
  const events = (isCluster ? 16_384 : 8_192) * eventBytes;
  const parts = { records: sessions * record, lists: lists.bytes, buckets, events, servers: masters * baseBytes };
  return { ...parts, all: Object.values(parts).reduce((sum, part) => sum + part, 0) };
}
