// HTTP/2 by hand: frames that no browser sends (RFC 9113), heads without Huffman coding (RFC 7541).
import net from 'node:net';

export const [DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION] = [0, 1, 2, 3, 4, 6, 7, 8, 9];
export const [END_STREAM, END_HEADERS] = [1, 4];
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const DEADLINE_MS = 120_000;

export function frame(type, flags, stream, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A SETTINGS frame with these values, by number. */
export function settings(values) {
  const entries = Object.entries(values).map(([id, value]) => {
    const entry = Buffer.alloc(6);
    entry.writeUInt16BE(Number(id), 0);
    entry.writeUInt32BE(value, 2);
    return entry;
  });
  return frame(SETTINGS, 0, 0, Buffer.concat(entries));
}

/** A whole number with a prefix of 7 bits (RFC 7541, section 5.1). */
function length(value) {
  if (value < 127) return Buffer.from([value]);
  const bytes = [127];
  for (let left = value - 127; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left]);
    bytes.push((left % 128) + 128);
  }
}

/** A string of HPACK without Huffman coding (RFC 7541, section 5.2). */
export function text(value) {
  const bytes = Buffer.from(value, 'latin1');
  return Buffer.concat([length(bytes.length), bytes]);
}

export const field = (name, value) => Buffer.concat([Buffer.from([0]), text(name), text(value)]);

/** GET of a path with additional fields; indices refer to the static table. */
export const head = (path, ...fields) => Buffer.concat([Buffer.from([0x82, 0x86, 0x04]), text(path), Buffer.from([0x01]), text('a'), ...fields]);

/** The same for POST. */
export const post = (path, ...fields) => Buffer.concat([Buffer.from([0x83, 0x86, 0x04]), text(path), Buffer.from([0x01]), text('a'), ...fields]);

/**
 * Sends these frames and collects the received ones until `enough(frames)` or the peer closes. If `reads` is false,
 * it reads nothing, and ends when everything is sent or the peer accepts no more.
 */
export function speak(port, frames, { enough = () => false, reads = true, first = settings({}) } = {}) {
  return new Promise((resolve, reject) => {
    const [got, socket] = [[], net.connect(port, '127.0.0.1')];
    let read = Buffer.alloc(0);
    const late = setTimeout(() => { socket.destroy(); reject(new Error(`neither an answer nor an end, but ${JSON.stringify(got.slice(-20))}`)); }, DEADLINE_MS);
    const end = (closed) => { clearTimeout(late); resolve({ got, closed, socket }); socket.destroy(); };
    if (reads) socket.on('data', (chunk) => {
      read = Buffer.concat([read, chunk]);
      while (read.length >= 9 && read.length >= 9 + read.readUIntBE(0, 3)) {
        const size = read.readUIntBE(0, 3);
        got.push({ type: read[3], flags: read[4], stream: read.readUInt32BE(5), payload: read.subarray(9, 9 + size) });
        read = read.subarray(9 + size);
        if (enough(got)) return end(false);
      }
    });
    socket.on('error', () => end(true)).on('close', () => end(true));
    socket.on('connect', async () => {
      socket.write(Buffer.concat([PREFACE, first]));
      for (const bytes of frames) {
        if (socket.destroyed) return;
        if (!socket.write(bytes) && !await drained(socket, reads)) return end(false);
      }
      if (!reads) end(false);
    });
  });
}

/** Whether there is room again. Waits at most 2 s for a peer that stops reading while its output is not read. */
function drained(socket, reads) {
  return new Promise((resolve) => {
    const full = reads ? undefined : setTimeout(() => resolve(false), 2_000);
    const go = () => { clearTimeout(full); resolve(true); };
    socket.once('drain', go).once('close', go);
  });
}

export const answered = (frames) => frames.some(({ type }) => type === HEADERS);
export const goaway = (frames) => frames.find(({ type }) => type === GOAWAY)?.payload.readUInt32BE(4);
