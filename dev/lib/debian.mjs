// Programs of other Debian releases, unpacked into a folder and run with the libraries they were built for; nothing is installed.
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const run = async (command, args, options = {}) => (await promisify(execFile)(command, args, { maxBuffer: 64 << 20, ...options })).stdout;

/** The mirror this machine's own sources name, which is one that it reaches. */
function mirror() {
  const release = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const targets = execFileSync('apt-get', ['indextargets', '--format', '$(REPO_URI) $(CODENAME) $(COMPONENT)', 'Created-By: Packages'], { encoding: 'utf8' });
  const [uri] = targets.split('\n').map((line) => line.split(' ')).find(([, codename, component]) => codename === release && component === 'main') ?? [];
  if (!uri) throw new Error(`apt-get knows no source of ${release ?? 'a Debian release'}: this needs Debian, or Debian's archive among the sources`);
  return uri.replace(/\/$/, '');
}

/** One suite of the archive, such as `trixie` or `bookworm-backports`, with an apt of its own below `folder`. */
export class Suite {
  constructor(name, folder) {
    Object.assign(this, { name, folder: join(folder, name) });
    this.options = [
      ...['Dir::State', 'Dir::Cache'].flatMap((setting) => ['-o', `${setting}=${this.folder}`]),
      ...[['sourcelist', 'sources.list'], ['sourceparts', 'none'], ['preferencesparts', 'none'], ['preferences', 'none']].flatMap(([setting, file]) => ['-o', `Dir::Etc::${setting}=${join(this.folder, file)}`]),
      '-o', `Dir::State::status=${join(this.folder, 'status')}`, '-o', 'APT::Sandbox::User=root', '-o', 'Acquire::Languages=none',
    ];
  }

  /** Milliseconds since it was asked last what it has. */
  age() {
    const stamp = join(this.folder, 'updated');
    return existsSync(stamp) ? Date.now() - Number(readFileSync(stamp, 'utf8')) : Infinity;
  }

  /** Reads what it has now. Backports and updates need `others`: the suites that have the libraries. */
  async update(others = []) {
    for (const part of ['lists/partial', 'archives/partial']) mkdirSync(join(this.folder, part), { recursive: true });
    writeFileSync(join(this.folder, 'status'), '');
    const archive = (name) => (name.endsWith('-security') ? `${mirror()}-security` : mirror());
    const lines = [this.name, ...others].map((name) => `deb [signed-by=${KEYRING}] ${archive(name)} ${name} main\n`);
    writeFileSync(join(this.folder, 'sources.list'), lines.join(''));
    await run('apt-get', [...this.options, 'update', '-q']);
    writeFileSync(join(this.folder, 'updated'), String(Date.now()));
  }

  /** The newest version of a package this suite itself has; undefined if it has none. */
  async version(name) {
    const lines = await run('apt-cache', [...this.options, 'madison', name]);
    const rows = lines.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
    return rows.find(([, , from]) => from?.includes(` ${this.name}/`))?.[1];
  }

  /** Unpacks packages of this suite and the libraries they are linked with; gives the folder. */
  async unpack(names, target) {
    if (existsSync(join(target, 'complete'))) return target;
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target, { recursive: true });
    const all = new Set(names);
    for (const name of all) {
      const lines = await run('apt-cache', [...this.options, 'depends', '--important', name]);
      for (const [, needed] of lines.matchAll(/Depends: (lib[\w.+-]+)/g)) all.add(needed);
    }
    await run('apt-get', [...this.options, 'download', '-q', `--target-release=${this.name}`, ...all], { cwd: target });
    for (const file of readdirSync(target).filter((name) => name.endsWith('.deb'))) {
      await run('dpkg', ['-x', join(target, file), target]);
      rmSync(join(target, file));
    }
    rmSync(join(target, 'usr/share'), { recursive: true });
    writeFileSync(join(target, 'complete'), '');
    return target;
  }
}

/** The words that run a program of an unpacked package with its own loader and libraries. */
export function unpacked(folder, program) {
  const places = ['lib', 'lib64', 'usr/lib', 'usr/lib64'].map((path) => join(folder, path)).filter((path) => existsSync(path));
  const libraries = places.flatMap((path) => readdirSync(path).filter((name) => name.endsWith('-linux-gnu')).map((name) => join(path, name)));
  const loaders = [...libraries, ...places].flatMap((path) => readdirSync(path).filter((name) => /^ld-linux.*\.so\.\d+$/.test(name)).map((name) => join(path, name)));
  return [loaders[0], '--library-path', libraries.join(':'), join(folder, 'usr/bin', program)];
}
