// Finds out whether a program needs libraries, which an empty image does not have.
import { readFileSync } from 'node:fs';

const PT_INTERP = 3; // the segment that names the loader of libraries

/** Whether a 64-bit little-endian ELF program names no loader. */
export function isStatic(file) {
  const elf = readFileSync(file);
  const [offset, size, count] = [Number(elf.readBigUInt64LE(0x20)), elf.readUInt16LE(0x36), elf.readUInt16LE(0x38)];
  return !Array.from({ length: count }, (_, at) => elf.readUInt32LE(offset + at * size)).includes(PT_INTERP);
}
