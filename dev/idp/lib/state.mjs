// The provider's state: its keys, its client's secret and oidc-provider's own records (sign-ins, grants, tokens). In
// a file they outlive a restart, so that an old session can still refresh its tokens. After a change it writes
// the whole file under a temporary name and renames it; that is enough for one developer.
import { generateKeyPair, randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const WRITE_DELAY_MS = 200; // joins the writes of one sign-in
const MAX_RECORDS = 20_000; // memory bound; evicts the oldest records first
// Records that end with their grant. An interaction names a grant but must outlive it: users switch accounts by it.
const GRANTED = new Set(['AccessToken', 'AuthorizationCode', 'BackchannelAuthenticationRequest', 'DeviceCode', 'RefreshToken']);
const generateKeys = promisify(generateKeyPair);

/** A key with a unique ID: relying parties look for another key only if the ID differs. */
async function newJwk(type, options, alg) {
  const { privateKey } = await generateKeys(type, options);
  return { ...privateKey.export({ format: 'jwk' }), kid: randomBytes(8).toString('hex'), alg, use: 'sig' };
}

async function freshState() {
  return {
    clientSecret: randomBytes(32).toString('base64url'),
    cookieKeys: [randomBytes(32).toString('base64url')],
    jwks: {
      keys: [
        await newJwk('rsa', { modulusLength: 2048 }, 'RS256'),
        await newJwk('ec', { namedCurve: 'P-256' }, 'ES256'),
      ],
    },
    records: [],
  };
}

async function readState(file) {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw new Error(`the provider's state in ${file} cannot be read (delete it to start again): ${error.message}`);
  }
}

/** Opens the state in `file`, or in memory when there is no file. */
export async function openState(file) {
  const loaded = (file && (await readState(file))) ?? (await freshState());
  const now = Date.now();
  const records = new Map(loaded.records.filter(([, record]) => !(record.expiresAt <= now)));
  let timer;
  let writing = Promise.resolve();

  const write = async () => {
    const text = JSON.stringify({ ...loaded, records: [...records] });
    await mkdir(dirname(file), { recursive: true });
    await writeFile(`${file}.new`, text, { mode: 0o600 });
    await rename(`${file}.new`, file);
  };
  const flush = () => {
    timer = undefined;
    writing = writing.then(write).catch((error) => process.stderr.write(`development provider: cannot save ${file}: ${error.message}\n`));
    return writing;
  };
  const changed = () => {
    if (file && !timer) timer = setTimeout(flush, WRITE_DELAY_MS);
  };
  if (file) await write();

  return {
    clientSecret: loaded.clientSecret,
    cookieKeys: loaded.cookieKeys,
    jwks: loaded.jwks,
    adapter: (model) => new Records(model, records, changed),
    async close() {
      clearTimeout(timer);
      if (file) await flush();
    },
  };
}

/** oidc-provider's storage port over one map; see its "adapter" setting for what each verb means. */
class Records {
  constructor(model, records, changed) {
    Object.assign(this, { model, records, changed });
  }

  key(id) {
    return `${this.model}:${id}`;
  }

  async upsert(id, payload, expiresIn) {
    const expiresAt = expiresIn === undefined ? undefined : Date.now() + expiresIn * 1000;
    this.records.delete(this.key(id)); // set again at the end, so that the map stays ordered by age
    this.records.set(this.key(id), { payload, expiresAt });
    for (const oldest of this.records.keys()) {
      if (this.records.size <= MAX_RECORDS) break;
      this.records.delete(oldest);
    }
    this.changed();
  }

  async find(id) {
    const record = this.records.get(this.key(id));
    if (!record) return undefined;
    if (record.expiresAt <= Date.now()) {
      this.records.delete(this.key(id));
      return undefined;
    }
    return structuredClone(record.payload);
  }

  async findBy(member, value) {
    for (const [key, { payload }] of this.records) {
      if (payload[member] === value && key.startsWith(`${this.model}:`)) return this.find(key.slice(this.model.length + 1));
    }
    return undefined;
  }

  findByUid(uid) {
    return this.findBy('uid', uid);
  }

  findByUserCode(userCode) {
    return this.findBy('userCode', userCode);
  }

  async consume(id) {
    const record = this.records.get(this.key(id));
    if (record) record.payload.consumed = Math.floor(Date.now() / 1000);
    this.changed();
  }

  async destroy(id) {
    this.records.delete(this.key(id));
    this.changed();
  }

  async revokeByGrantId(grantId) {
    for (const [key, { payload }] of this.records) {
      if (payload.grantId === grantId && GRANTED.has(key.split(':', 1)[0])) this.records.delete(key);
    }
    this.changed();
  }
}
