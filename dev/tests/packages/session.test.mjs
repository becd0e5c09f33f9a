// The npm package @vestibule/session: its contents, then React 18, React 19 and no React, each in an empty project.
// web/e2e/session-library.spec.mjs signs in through apps that use it.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';

import { ROOT } from '../../stack.mjs';
import { contents, LICENCE, node, npmProject, packageFile, run, VERSION } from './project.mjs';

const MAX_BYTES = 20_000; // of the packed file
const FILE = packageFile(`vestibule-session-${VERSION}.tgz`);
const web = (name) => join(ROOT, 'web/node_modules', name);
const installed = (project, name) => join(project, 'node_modules/@vestibule/session', name);

/** A project with React 19: the packages of web/, which the product uses. */
function withReact19() {
  const project = npmProject(FILE);
  mkdirSync(join(project, 'node_modules/@types'));
  for (const name of ['react', 'react-dom', '@types/react', '@types/react-dom']) symlinkSync(web(name), join(project, 'node_modules', name));
  return project;
}

/** Writes a module of a project and runs it. */
function runModule(project, source) {
  const file = join(project, 'main.mjs');
  writeFileSync(file, source);
  return node(project, file);
}

test('it holds its modules, their types, manual and licence, and nothing else', () => {
  const { names, bytes } = contents(FILE);
  const modules = ['RequireSession', 'SessionProvider', 'backoff', 'core', 'index', 'profile', 'sign-in', 'status', 'store', 'tabs', 'useExpiry', 'useSignOut'];
  const expected = ['LICENSE', 'README.md', 'package.json', ...modules.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`])];
  assert.deepEqual(names, expected.sort());
  assert.ok(bytes < MAX_BYTES, `${bytes} bytes`);
});

describe('without React', () => {
  const project = npmProject(FILE);

  test('npm installs no React with it', () => {
    assert.ok(!existsSync(join(project, 'node_modules/react')));
    const { version, license } = JSON.parse(readFileSync(installed(project, 'package.json'), 'utf8'));
    assert.deepEqual([version, license], [VERSION, 'Apache-2.0']);
    assert.equal(readFileSync(installed(project, 'LICENSE'), 'utf8'), LICENCE);
  });

  test('its entry /core loads on a server and touches no window; the other one needs React', () => {
    const answer = runModule(project, `
      import { createSessionStore, loginUrl } from '@vestibule/session/core';
      const store = createSessionStore();
      console.log(JSON.stringify([store.getSnapshot(), loginUrl('/orders?a=b'), typeof window]));
      await import('@vestibule/session').catch(({ code }) => console.log(code));`);
    assert.equal(answer, '[{"user":null,"error":null,"isLoading":true,"lost":null},"/api/auth/login?returnTo=%2Forders%3Fa%3Db","undefined"]\nERR_MODULE_NOT_FOUND');
  });

  test('a page finds its user, signs in and signs out', () => {
    const answer = runModule(project, `
      import { Window } from ${JSON.stringify(web('happy-dom/lib/index.js'))};
      import { createSessionStore, signIn, signOut } from '@vestibule/session/core';
      const window = new Window({ url: 'https://app.example/orders?state=open#latest' });
      Object.assign(globalThis, { window, document: window.document });
      const users = [{ sub: 'ada' }, null];
      const fetch = async () => { const user = users.shift(); return new Response(user && JSON.stringify(user), { status: user ? 200 : 204 }); };
      const store = createSessionStore({ fetch });
      const states = [];
      const stop = store.subscribe(() => states.push(store.getSnapshot()));
      await store.check();
      await store.check();
      signIn(undefined, (url) => console.log(url));
      signOut(store, (url) => console.log(url));
      stop();
      console.log(JSON.stringify(states.map(({ user, lost }) => [user?.sub ?? null, lost])));
      await window.happyDOM.close();`);
    assert.deepEqual(answer.split('\n'), ['/api/auth/login?returnTo=%2Forders%3Fstate%3Dopen%23latest', '/api/auth/logout', '[["ada",null],[null,"ended"]]']);
  });

  for (const resolution of ['bundler', 'nodenext']) {
    test(`TypeScript finds its types with ${resolution}, without types of React`, () => {
      writeFileSync(join(project, 'main.ts'), 'import { createSessionStore, type User } from "@vestibule/session/core";\nexport const user: User | null = createSessionStore().getSnapshot().user;\n');
      const module = resolution === 'bundler' ? 'esnext' : 'nodenext';
      run(web('.bin/tsc'), ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2023,dom', '--types', '', '--module', module, '--moduleResolution', resolution, 'main.ts'], { cwd: project });
    });
  }
});

for (const [major, make] of [['18', () => npmProject(FILE, 'dev/tests/packages/react-18')], ['19', withReact19]]) {
  describe(`with React ${major}`, () => {
    const project = make();
    const elements = `
      import { createElement as h, version } from 'react';
      import { createSessionStore, RequireSession, SessionProvider, useExpiry, useSession, useSignOut } from '@vestibule/session';
      const fetch = async (url) => new Response(JSON.stringify(String(url).endsWith('/status') ? { state: 'signed_in', expires_in: 60 } : { sub: 'ada', name: 'Ada' }));
      const store = createSessionStore({ fetch });
      function Orders() {
        const { user, isLoading } = useSession();
        const { secondsLeft } = useExpiry({ fetch });
        const signOut = useSignOut((url) => console.log(url));
        return h('p', { onClick: signOut }, isLoading ? 'loading' : \`\${user.name} \${secondsLeft === null ? '' : 'warned'}\`);
      }
      const guarded = h(RequireSession, { loading: h('i'), failed: () => h('b'), signedOut: () => h('s') }, h('u', null, 'guarded'));
      const page = h(SessionProvider, { store }, h(Orders), guarded);`;

    test('a server renders it without a window', () => {
      const answer = runModule(project, `${elements}
        import { renderToString } from 'react-dom/server';
        console.log(version.split('.')[0], renderToString(page));`);
      assert.equal(answer, `${major} <p>loading</p><i></i>`);
    });

    test('a browser takes over what a server rendered, shows the user and signs out', () => {
      const answer = runModule(project, `${elements}
        import { Window } from ${JSON.stringify(web('happy-dom/lib/index.js'))};
        import { renderToString } from 'react-dom/server';
        const html = renderToString(page);
        const window = new Window({ url: 'https://app.example/orders' });
        Object.assign(globalThis, { window, document: window.document, sessionStorage: window.sessionStorage, IS_REACT_ACT_ENVIRONMENT: false });
        globalThis.navigator ??= window.navigator; // Node 20 has none
        const { hydrateRoot } = await import('react-dom/client');
        document.body.innerHTML = '<main>' + html + '</main>';
        const main = document.querySelector('main');
        const root = hydrateRoot(main, page, { onRecoverableError: (error) => console.log('not the same', error) });
        while (main.textContent !== 'Ada warnedguarded') await new Promise((done) => setTimeout(done, 5));
        document.querySelector('p').click();
        root.unmount();
        console.log(main.textContent === '');
        await window.happyDOM.close();
        process.exit();`);
      assert.deepEqual(answer.split('\n'), ['/api/auth/logout', 'true']);
    });

    test('the example compiles with its types', () => {
      const app = join(project, 'example');
      cpSync(join(ROOT, 'web/session/example'), app, { recursive: true });
      symlinkSync(web('vite'), join(project, 'node_modules/vite'));
      run(web('.bin/tsc'), ['-p', '.'], { cwd: app });
    });
  });
}
