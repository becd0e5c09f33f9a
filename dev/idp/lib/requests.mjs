// The provider's own pages outside the protocol: sign-in, consent, cancel and their static files.
import { readFile } from 'node:fs/promises';

import { ACCOUNTS, authenticate } from './accounts.mjs';
import { consentPage, errorPage, signInPage } from './pages.mjs';
import { applicationOf, pageHeaders } from './provider.mjs';

const MAX_FORM_BYTES = 8 * 1024; // two short fields
const ASSETS = new Map([
  ['pages.css', 'text/css; charset=utf-8'],
  ['pages.js', 'text/javascript; charset=utf-8'],
  ['mark.svg', 'image/svg+xml'],
  ['grace.svg', 'image/svg+xml'],
]);

async function readForm(request) {
  let text = '';
  for await (const chunk of request) {
    text += chunk;
    if (text.length > MAX_FORM_BYTES) throw new Error('form too large');
  }
  return new URLSearchParams(text);
}

async function sendAsset(response, name) {
  const type = ASSETS.get(name);
  if (!type) return response.writeHead(404, { 'Content-Type': 'text/plain' }).end('not found\n');
  const body = await readFile(new URL(`../assets/${name}`, import.meta.url));
  return response.writeHead(200, { 'Content-Type': type, 'Cache-Control': 'max-age=300', 'X-Content-Type-Options': 'nosniff' }).end(body);
}

/** The request handler of the whole process. */
export function createRequestHandler(provider, { issuer, redirectUris }) {
  const protocol = provider.callback();
  const headers = { ...pageHeaders(redirectUris), 'Content-Type': 'text/html; charset=utf-8' };
  const application = applicationOf(redirectUris);
  const send = (response, status, body) => response.writeHead(status, headers).end(body);

  async function show(request, response, extra = {}, status = 200) {
    const { uid, prompt, params, session } = await provider.interactionDetails(request, response);
    const client = await provider.Client.find(params.client_id);
    const clientName = client?.clientName ?? params.client_id;
    const account = ACCOUNTS.find(({ sub }) => sub === session?.accountId);
    if (prompt.name === 'consent') {
      return send(response, status, consentPage({ uid, clientName, account, scopes: String(params.scope ?? 'openid').split(' ') }));
    }
    const mayContinue = prompt.name === 'select_account' && account !== undefined;
    const reauthenticate = Boolean(session?.accountId) && !mayContinue;
    return send(response, status, signInPage({ uid, clientName, email: params.login_hint, account, mayContinue, reauthenticate, ...extra }));
  }

  async function signIn(request, response) {
    const form = await readForm(request);
    const email = form.get('email') ?? '';
    const account = authenticate(email, form.get('password') ?? '');
    if (!account) return show(request, response, { email: email.slice(0, 254), wrong: true }, 401);
    const result = { login: { accountId: account.sub, amr: ['pwd'], acr: 'urn:vestibule:dev:password', remember: true }, select_account: {} };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }

  async function interaction(request, response, uid, action) {
    // the cookie binds the interaction to this browser; the path must name the same one
    const details = await provider.interactionDetails(request, response);
    if (details.uid !== uid) throw new Error('another sign-in was started in this browser');
    if (request.method === 'GET' && action === undefined) return show(request, response);
    if (request.method !== 'POST') return response.writeHead(405, { Allow: 'POST' }).end();
    if (request.headers.origin && request.headers.origin !== issuer && request.headers.origin !== 'null') {
      return send(response, 403, errorPage('forbidden', 'This form was sent from another site.', application));
    }
    if (action === 'login') return signIn(request, response);
    if (action === 'continue' && details.prompt.name === 'select_account' && details.session?.accountId) {
      return provider.interactionFinished(request, response, { select_account: {} }, { mergeWithLastSubmission: true });
    }
    if (action === 'consent') {
      return provider.interactionFinished(request, response, { consent: {} }, { mergeWithLastSubmission: true });
    }
    if (action === 'abort') {
      const result = { error: 'access_denied', error_description: 'the person cancelled the sign-in' };
      return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
    }
    return send(response, 404, errorPage('not_found', 'There is no such page.', application));
  }

  return async (request, response) => {
    const { pathname } = new URL(request.url, issuer);
    const [, first, second, third] = pathname.split('/');
    if (first === 'assets') return sendAsset(response, second);
    if (first !== 'interaction') return protocol(request, response);
    try {
      return await interaction(request, response, second, third);
    } catch (error) {
      process.stderr.write(`sign-in page: ${error.message}\n`);
      return send(response, 400, errorPage('sign_in_expired', 'This sign-in page is no longer valid: it is too old, was used already, or belongs to another browser.', application));
    }
  };
}
