// A real Prometheus for tests of a stack's metrics.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort, until } from './net.mjs';

const READY_MS = 30_000;
const STOP_MS = 10_000;

/** The processes of a stack as targets, with the job, namespace and pod labels that rules and dashboard use. */
export const targetsOf = (stack) => Object.entries(stack.adminUrls).map(([name, url]) => ({
  targets: [new URL(url).host],
  labels: { job: name.startsWith('edge') ? 'vestibule-edge' : 'vestibule-session-svc', namespace: 'vestibule', pod: name },
}));

/** Starts a Prometheus that scrapes these targets every second and evaluates these groups of rules. */
export async function startPrometheus({ targets, groups = [], interval = '1s' }) {
  const folder = mkdtempSync(join(tmpdir(), 'vestibule-prometheus-'));
  const write = (name, content) => {
    writeFileSync(join(folder, name), JSON.stringify(content));
    return join(folder, name);
  };
  const config = write('prometheus.json', {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: interval },
    rule_files: [write('rules.json', { groups })],
    scrape_configs: [{ job_name: 'vestibule', static_configs: targets }],
  });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn('prometheus', [`--config.file=${config}`, `--storage.tsdb.path=${join(folder, 'data')}`, `--web.listen-address=127.0.0.1:${port}`, '--log.level=error'], { stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  const get = async (path, parameters = {}) => {
    const answer = await fetch(`${url}${path}?${new URLSearchParams(parameters)}`);
    const { data, error } = await answer.json();
    if (!answer.ok) throw new Error(`${path} ${JSON.stringify(parameters)}: ${error}`);
    return data;
  };
  const answers = () => fetch(`${url}/-/ready`).then((answer) => answer.ok, () => false);
  await until(READY_MS, answers, () => 'Prometheus does not get ready');
  return {
    url,
    /** The current samples of a query. */
    ask: async (query) => (await get('/api/v1/query', { query })).result,
    /** The labels of all matching series. */
    series: (match) => get('/api/v1/series', { 'match[]': match }),
    /** Types and help texts by name. */
    metadata: () => get('/api/v1/metadata'),
    /** The pending and firing alerts. */
    alerts: async () => (await get('/api/v1/alerts')).alerts,
    async stop() {
      child.kill('SIGTERM');
      const killed = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(killed);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
