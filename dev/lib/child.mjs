// Child processes that are ended by their process id, never by name, and never left behind (see reaper.mjs).
import { spawn } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const TAIL_CHARS = 64 * 1024; // of output kept in memory, for error messages and for tests that search the logs
const STOP_GRACE_MS = 12_000; // a drain may take ten seconds; after this the process is killed

let reaper;
function tellReaper(line) {
  if (!reaper) {
    const script = fileURLToPath(new URL('./reaper.mjs', import.meta.url));
    reaper = spawn(process.execPath, [script], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    reaper.on('error', () => {});
    reaper.stdin.on('error', () => {});
    reaper.unref();
    reaper.stdin.unref?.();
  }
  reaper.stdin.write(`${line}\n`);
}

/** One running program. `exited` resolves with `{code, signal}`; `output` is the end of its output,
 * `firstLine` a promise of the first line on its standard output. */
export class Child {
  /** Starts `command` in a new process group. `logFile` receives a copy of its output, `onLine` each line. */
  constructor(name, command, args, { env = process.env, cwd, logFile, onLine } = {}) {
    this.name = name;
    this.output = '';
    this.firstLine = new Promise((resolve) => { this.gotLine = resolve; });
    let log;
    if (logFile) {
      mkdirSync(dirname(logFile), { recursive: true });
      log = createWriteStream(logFile, { flags: 'a', mode: 0o600 });
    }
    this.process = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    this.pid = this.process.pid;
    if (this.pid) tellReaper(`+${this.pid}`);
    let partial = '';
    const keep = (chunk) => {
      log?.write(chunk);
      this.output = (this.output + chunk).slice(-TAIL_CHARS);
      if (!onLine) return;
      const lines = (partial + chunk).split('\n');
      partial = lines.pop().slice(-TAIL_CHARS);
      lines.forEach((line) => onLine(line));
    };
    let start = ''; // of standard output, up to its first line end
    this.process.stdout.setEncoding('utf8').on('data', (chunk) => {
      keep(chunk);
      if (start.includes('\n')) return;
      start += chunk;
      if (start.includes('\n')) this.gotLine(start.slice(0, start.indexOf('\n')));
    });
    this.process.stderr.setEncoding('utf8').on('data', keep);
    this.ended = undefined;
    this.exited = new Promise((resolve) => {
      const done = (code, signal) => {
        if (this.ended) return;
        this.ended = { code, signal };
        if (this.pid) tellReaper(`-${this.pid}`);
        log?.end();
        resolve(this.ended);
      };
      this.process.on('error', (error) => {
        this.output += `${error.message}\n`;
        done(-1, null);
      });
      this.process.on('close', done);
    });
  }

  /** Sends a signal to the whole process group. */
  signal(name) {
    if (this.ended || !this.pid) return;
    try {
      process.kill(-this.pid, name);
    } catch {
      // it ended between the check and the signal
    }
  }

  /** Sends a signal, waits for the end, and kills the process after a time limit. Resolves with `{code, signal}`. */
  async stop(signal = 'SIGTERM') {
    this.signal(signal);
    const timer = setTimeout(() => this.signal('SIGKILL'), STOP_GRACE_MS);
    const ended = await this.exited;
    clearTimeout(timer);
    return ended;
  }

  /** The last lines of its output, for an error message. */
  tail(lines = 20) {
    return this.output.trimEnd().split('\n').slice(-lines).join('\n');
  }
}
