// Probes as the kubelet makes them: from the node to the pod's address, or by a program in the container.
import { spawn } from 'node:child_process';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';

import { portOf } from './pod-spec.mjs';

const SECOND_MS = 1_000;

/** Whether something answers well in time. */
function byHttp({ path = '/', port, scheme = 'HTTP', httpHeaders = [] }, host, timeout) {
  const { get } = scheme === 'HTTPS' ? https : http;
  return new Promise((resolve) => {
    const headers = Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value]));
    const request = get({ host, port, path, headers, agent: false, timeout, rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode >= 200 && response.statusCode < 400);
    });
    request.on('timeout', () => request.destroy()).on('error', () => resolve(false));
  });
}

function byConnecting(port, host, timeout) {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port, timeout }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('timeout', () => socket.destroy(new Error('late'))).on('error', () => resolve(false));
  });
}

/**
 * Runs a program in a container, as its user. nsenter instead of `podman exec`, which costs a third of a second of a core: too
 * much for what is asked of every pod every few seconds.
 */
export function runWithin({ pid, env, user, group }, command, { timeout, input } = {}) {
  return new Promise((resolve) => {
    const who = ['--setuid', String(user ?? 0), '--setgid', String(group ?? user ?? 0)];
    const child = spawn('nsenter', ['--target', String(pid), '--mount', '--uts', '--ipc', '--net', '--pid', '--root', '--wd', ...who, '--', ...command], {
      env, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'], detached: true,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk) => { output += chunk; });
    child.stdin?.on('error', () => {}).end(input);
    const timer = timeout && setTimeout(() => {
      try { process.kill(-child.pid, 'SIGKILL'); } catch { /* it has just ended */ }
    }, timeout);
    child.on('error', (error) => { clearTimeout(timer); resolve({ code: -1, output: error.message }); });
    child.on('close', (code) => { clearTimeout(timer); resolve({ code: code ?? -1, output }); });
  });
}

/** One look of a probe at a container: whether all is well. */
async function look(probe, pod, container) {
  const timeout = (probe.timeoutSeconds ?? 1) * SECOND_MS;
  const at = (port) => portOf(pod.template, port);
  if (probe.httpGet) return byHttp({ ...probe.httpGet, port: at(probe.httpGet.port) }, probe.httpGet.host ?? pod.ip, timeout);
  if (probe.tcpSocket) return byConnecting(at(probe.tcpSocket.port), pod.ip, timeout);
  if (probe.exec) return (await runWithin(container, probe.exec.command, { timeout })).code === 0;
  throw new Error(`a probe of ${pod.name} is of a kind that is not known here: ${Object.keys(probe)}`);
}

/**
 * Looks again and again until stopped. `told(well)` is called when a state is certain: after `successThreshold` good looks or
 * `failureThreshold` bad ones in a row.
 */
export function watch(probe, pod, container, told) {
  let [good, bad, stopped, timer] = [0, 0, false, undefined];
  const period = (probe.periodSeconds ?? 10) * SECOND_MS;
  const again = async () => {
    const began = performance.now();
    const well = await look(probe, pod, container);
    if (stopped) return;
    [good, bad] = well ? [good + 1, 0] : [0, bad + 1];
    if (well && good >= (probe.successThreshold ?? 1)) told(true);
    if (!well && bad >= (probe.failureThreshold ?? 3)) told(false);
    if (!stopped) timer = setTimeout(again, Math.max(0, period - (performance.now() - began)));
  };
  timer = setTimeout(again, (probe.initialDelaySeconds ?? 0) * SECOND_MS);
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
