// Runs the command `doctor` of both programs, for tests and by hand.
import { spawn } from 'node:child_process';

import { binary } from '../../stack.mjs';

const LONGEST_MS = 60_000;

/** The settings of a stack's edge and session service, for a command that runs next to them. */
export function settingsOf(stack) {
  const provider = { OIDC_ISSUER_URL: stack.issuer, OIDC_CLIENT_ID: 'vestibule-dev', OIDC_CLIENT_SECRET: stack.secrets.client };
  return {
    provider,
    edge: { ...provider, EDGE_BASE_URL: stack.edgeUrl, EDGE_SECRET: stack.secrets.edge, EDGE_SESSION_SVC_URL: stack.sessionUrls.join(',') },
    session: { ...provider, SESSION_STORE: stack.store, SESSION_ENCRYPTION_KEY: stack.secrets.encryption },
  };
}

/** Runs a program with only these settings: `{status, stdout, stderr}`. */
export function run(program, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary(program), args, { env });
    const output = { stdout: '', stderr: '' };
    for (const name of Object.keys(output)) child[name].setEncoding('utf8').on('data', (text) => { output[name] += text; });
    const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_MS);
    child.on('error', reject).on('close', (status) => {
      clearTimeout(timer);
      resolve({ status, ...output });
    });
  });
}

/** The report of a program's `doctor`: `{status, findings, sections, amiss, text, found(id, section)}`. */
export async function doctor(program, env) {
  const { status, stdout, stderr } = await run(program, ['doctor'], env);
  const [findings, sections] = [[], []];
  for (const line of stdout.split('\n')) {
    const finding = /^ {2}(ok|info|unknown|warning|problem) +(\w+) +(.*)$/.exec(line);
    const remedy = /^ +→ (?:([A-Z_]+): )?(.*)$/.exec(line);
    if (finding) findings.push({ result: finding[1], id: finding[2], found: finding[3], section: sections.at(-1) });
    else if (remedy) Object.assign(findings.at(-1), { setting: remedy[1], advice: remedy[2] });
    else if (line) sections.push(line);
  }
  const amiss = findings.filter(({ result }) => result === 'problem' || result === 'warning').map(({ id, result }) => `${result} ${id}`);
  return {
    status, findings, sections, amiss, text: stdout + stderr,
    found: (id, section = '') => findings.find((finding) => finding.id === id && finding.section.startsWith(section)),
  };
}
