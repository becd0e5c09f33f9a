// The cluster's name server: names of Services, and of the pods behind headless ones, as CoreDNS answers them. podman's own
// server knows a pod by the names it was started with; here a pod that is not ready has to leave its Service's name.
import dgram from 'node:dgram';
import net from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const A = 1;
const [NOERROR, NXDOMAIN] = [0, 3];
const TTL_S = 5; // CoreDNS' own for the cluster's names
const SHORTEST = 17; // a header and a question

/** Question of a query: its name, type and where it ends. */
function question(query) {
  const labels = [];
  let at = 12;
  while (query[at] !== 0) {
    const length = query[at];
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** Answers a query. `lookUp(name)` gives addresses, or undefined for a name there is none of. */
export function answer(query, lookUp) {
  const { name, type, end } = question(query);
  const found = lookUp(name);
  const addresses = type === A ? (found ?? []) : [];
  // in another order each time, as CoreDNS does
  const turned = addresses.map((address) => [Math.random(), address]).sort(([one], [other]) => one - other);
  const head = Buffer.from(query.subarray(0, end));
  head.writeUInt16BE(0x8580 | (query.readUInt16BE(2) & 0x0100) | (found ? NOERROR : NXDOMAIN), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(turned.length, 6);
  head.writeUInt32BE(0, 8);
  const records = turned.map(([, address]) => {
    const record = Buffer.alloc(16);
    record.writeUInt16BE(0xc00c, 0); // the name of the question
    record.writeUInt16BE(A, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt32BE(TTL_S, 6);
    record.writeUInt16BE(4, 10);
    Buffer.from(address.split('.').map(Number)).copy(record, 12);
    return record;
  });
  return Buffer.concat([head, ...records]);
}

/** Serves names at `host`, port 53, over UDP and TCP, in this thread. */
async function serve(host, lookUp) {
  const udp = dgram.createSocket('udp4');
  udp.on('message', (query, from) => {
    if (query.length < SHORTEST) return;
    udp.send(answer(query, lookUp), from.port, from.address, () => {});
  });
  const tcp = net.createServer((socket) => {
    let kept = Buffer.alloc(0);
    socket.on('error', () => socket.destroy()).on('data', (chunk) => {
      kept = Buffer.concat([kept, chunk]);
      while (kept.length >= 2 && kept.length >= 2 + kept.readUInt16BE(0)) {
        const end = 2 + kept.readUInt16BE(0);
        const whole = answer(kept.subarray(2, end), lookUp);
        const length = Buffer.alloc(2);
        length.writeUInt16BE(whole.length, 0);
        socket.write(Buffer.concat([length, whole]));
        kept = kept.subarray(end);
      }
    });
  });
  await new Promise((resolve, reject) => udp.once('error', reject).bind(53, host, resolve));
  await new Promise((resolve, reject) => tcp.once('error', reject).listen(53, host, resolve));
}

/** Starts a name server in a thread of its own: programs that wait for it are not kept by what else is done here. */
export async function startDns(host) {
  const thread = new Worker(new URL(import.meta.url), { workerData: { nameServerAt: host } });
  await new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject));
  return {
    /** Takes other names: a map from a name to its addresses. */
    set: (names) => thread.postMessage(names),
    stop: () => thread.terminate(),
  };
}

if (!isMainThread && workerData?.nameServerAt) {
  let names = new Map();
  parentPort.on('message', (others) => { names = others; });
  await serve(workerData.nameServerAt, (name) => names.get(name));
  parentPort.postMessage('ready');
}
