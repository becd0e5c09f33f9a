// After all people have left, no key, index entry or descriptor remains, and memory stays within a run's bound.
import { isLeft } from '../growth.mjs';

const DESCRIPTORS = 24; // allowed extra descriptors: connections to replicas, kept for a minute
const BYTES = 96 << 20; // bounded caches and an allocator's arenas fill during the run

/** Whether a process has more descriptors or memory than a run may leave behind. */
export const hasGrown = ({ before, after }) => after.descriptors > before.descriptors + DESCRIPTORS || after.bytes > before.bytes + BYTES;

export default {
  name: 'growth',
  what: 'no growth of descriptors, memory, keys or entries of indexes',
  find({ events }) {
    const processes = events.filter(({ type }) => type === 'growth');
    const stores = events.filter(({ type }) => type === 'keys');
    if (processes.length === 0 || stores.length === 0) return [{ at: 0, text: 'the run did not record what remains' }];
    return [
      ...processes.filter(hasGrown).map(({ at, name, before, after }) => (
        { at, text: `${name} has ${after.descriptors} descriptors and takes ${after.bytes} bytes; ${before.descriptors} and ${before.bytes} before` })),
      ...stores.flatMap(({ at, keys }) => Object.entries(keys).map(([letter, count]) => (
        isLeft(letter) && { at, text: `${count} keys of the letter ${letter} remain` }))),
    ].filter(Boolean);
  },
};
