// The settings that the documents tell operators to register at a provider and to set here. The suite uses only
// those, so that an error in the documents fails the suite.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT } from '../../stack.mjs';

const read = (path) => readFileSync(join(ROOT, path), 'utf8');

/** The values that README.md says to register, for an edge at this address. */
export function registration(edgeUrl) {
  const readme = read('README.md');
  const named = (what) => {
    const found = new RegExp(`^\\| ${what}[^|]*\\| \`https://YOUR-HOST([^\`]*)\` \\|$`, 'm').exec(readme);
    assert.ok(found, `README.md says what to register as ${what}`);
    return `${edgeUrl}${found[1]}`;
  };
  return {
    redirectUri: named('redirect URI'),
    postLogoutRedirectUri: named('post-logout redirect URI'),
    backchannelLogoutUri: named('back-channel logout URI'),
  };
}

/**
 * The settings below a provider's heading in docs/providers.md, with `origin` in place of `https://HOST`.
 * @returns {Record<string, string>} by variable name
 */
export function settings(heading, origin, client) {
  const page = read('docs/providers.md');
  const section = page.split(/^### /m).find((text) => text.startsWith(`${heading}\n`));
  assert.ok(section, `docs/providers.md has the heading ${heading}`);
  const block = /```sh\n([\s\S]*?)```/.exec(section);
  assert.ok(block, `docs/providers.md has settings for ${heading}`);
  const lines = block[1].split('\n').map((line) => line.replace(/\s+#.*$/, '')).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const [name, ...value] = line.split('=');
    assert.match(name, /^(OIDC|EDGE|SESSION)_[A-Z_]+$/, `a setting in docs/providers.md, ${heading}`);
    return [name, value.join('=').replaceAll('https://HOST', origin).replaceAll('CLIENT-ID', client.id)];
  }));
}

/** The block in this language below an application's heading in docs/integrations/applications.md. */
export function block(heading, language) {
  const section = read('docs/integrations/applications.md').split(/^#+ /m).find((text) => text.startsWith(`${heading}\n`));
  const [, text] = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(section ?? '') ?? [];
  assert.ok(text, `docs/integrations/applications.md has ${language} for ${heading}`);
  return text;
}

/** The route table of an application, with this upstream. */
export const routes = (heading, upstream) => block(heading, 'toml').replace(/^upstream = "[^"]*"/m, `upstream = "${upstream}"`);

/** The rule of an application for a proxy that asks the edge. */
export const checks = (heading) => block(heading, 'toml').replace('[[route]]', '[[check]]').replace(/^(?:upstream|preserve_host|max_body) = .*\n/gm, '');
