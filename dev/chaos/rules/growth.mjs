// When everybody is gone, nothing is left of them: no key, no entry of an index, no descriptor; and memory is what a run of this size takes.
import { isLeft } from '../growth.mjs';

const DESCRIPTORS = 24; // that may be open beside those of before: connections to replicas, kept for a minute
const BYTES = 96 << 20; // caches of a bounded size and an allocator's arenas fill while people are there

/** Whether a process has more open, or takes more, than a run leaves behind. */
export const hasGrown = ({ before, after }) => after.descriptors > before.descriptors + DESCRIPTORS || after.bytes > before.bytes + BYTES;

export default {
  name: 'growth',
  what: 'no growth of descriptors, memory, keys or entries of indexes',
  find({ events }) {
    const processes = events.filter(({ type }) => type === 'growth');
    const stores = events.filter(({ type }) => type === 'keys');
    if (processes.length === 0 || stores.length === 0) return [{ at: 0, text: 'nobody looked what is left' }];
    return [
      ...processes.filter(hasGrown).map(({ at, name, before, after }) => (
        { at, text: `${name} has ${after.descriptors} descriptors and takes ${after.bytes} bytes; ${before.descriptors} and ${before.bytes} before` })),
      ...stores.flatMap(({ at, keys }) => Object.entries(keys).map(([letter, count]) => (
        isLeft(letter) && { at, text: `${count} keys of the letter ${letter} are left` }))),
    ].filter(Boolean);
  },
};
