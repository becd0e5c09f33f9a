// The provider's pages. Every value goes through `html`, which escapes; no inline script or style, no foreign origin.
import { ACCOUNTS } from './accounts.mjs';

/** The name of this provider for users. */
export const PROVIDER_NAME = 'Example ID';

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

class Markup {
  constructor(text) {
    this.text = text;
  }
}

const escape = (value) => (value instanceof Markup ? value.text : String(value ?? '').replace(/[&<>"']/g, (character) => ESCAPES[character]));

function html(parts, ...values) {
  const text = parts.reduce((all, part, at) => all + [values[at - 1]].flat().map(escape).join('') + part);
  return new Markup(text);
}

function page(title, main) {
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${title} · ${PROVIDER_NAME}</title>
    <link rel="icon" href="/assets/mark.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/assets/pages.css">
    <script src="/assets/pages.js" defer></script>
  </head>
  <body>
    <div class="sheet">
      <header class="brand"><img src="/assets/mark.svg" alt="" width="28" height="28"><span>${PROVIDER_NAME}</span></header>
      <main class="card">${main}</main>
      <footer>A development identity provider. It runs on this machine only.</footer>
    </div>
  </body>
</html>
`.text;
}

function accountChoice(account) {
  return html`
        <li>
          <button type="button" class="account" data-email="${account.email}" data-password="${account.password}">
            <span class="initial" aria-hidden="true">${account.given_name[0]}</span>
            <span class="who"><b>${account.name}</b><span>${account.email}</span></span>
            <code><span class="hidden">Password: </span>${account.password}</code>
          </button>
        </li>`;
}

/** Continues with the signed-in account, for a user who may choose one. */
const continueAs = (uid, account) => html`
        <form method="post" action="/interaction/${uid}/continue"><button type="submit" class="primary">Continue as ${account.name}</button></form>
        <h2 class="other">Or sign in to another account</h2>`;

/**
 * The sign-in page. Its form posts `email` and `password` to `/interaction/{uid}/login`; a different account replaces
 * the signed-in one.
 */
export function signInPage({ uid, clientName, email = '', wrong = false, account, mayContinue = false, reauthenticate = false }) {
  const who = account ? `You are signed in as ${account.name}. ` : '';
  const note = reauthenticate
    ? html`<p class="lead">${who}${clientName} asks you to sign in again, as the same person or another one.</p>`
    : html`<p class="lead">to continue to ${clientName}</p>`;
  const alert = wrong ? html`<p class="alert" role="alert" id="wrong">The e-mail address or the password is wrong. Check both and try again.</p>` : '';
  const invalid = wrong ? html` aria-invalid="true" aria-describedby="wrong"` : '';
  return page(wrong ? 'Sign in: try again' : 'Sign in', html`
        <h1>${mayContinue ? 'Choose an account' : 'Sign in'}</h1>
        ${note}
        ${mayContinue ? continueAs(uid, account) : ''}
        ${alert}
        <form method="post" action="/interaction/${uid}/login" id="sign-in">
          <label for="email">E-mail address</label>
          <input id="email" name="email" type="email" autocomplete="username" required maxlength="254" value="${email}"${email ? '' : html` autofocus`}${invalid}>
          <label for="password">Password</label>
          <input id="password" name="password" type="password" autocomplete="current-password" required maxlength="128"${email ? html` autofocus` : ''}${invalid}>
          <button type="submit" class="${mayContinue ? 'second' : 'primary'}">Sign in</button>
        </form>
        <form method="post" action="/interaction/${uid}/abort"><button type="submit" class="quiet">Cancel</button></form>
        <section aria-labelledby="accounts">
          <h2 id="accounts">Accounts to try</h2>
          <ul>${ACCOUNTS.map(accountChoice)}</ul>
        </section>`);
}

/** Asks whether to continue with the signed-in account (only if the client asked for consent). */
export function consentPage({ uid, clientName, account, scopes }) {
  return page('Continue', html`
        <h1>Continue to ${clientName}?</h1>
        <p class="lead">You are signed in as ${account?.name ?? 'yourself'}. ${clientName} will see: ${scopes.join(', ')}.</p>
        <form method="post" action="/interaction/${uid}/consent"><button type="submit" class="primary">Continue</button></form>
        <form method="post" action="/interaction/${uid}/abort"><button type="submit" class="quiet">Cancel</button></form>`);
}

/** The sign-out page around the provider's own form; submits itself if the request named the session to end. */
export function signOutPage(form, { certain }) {
  return page('Sign out', html`
        <h1>${certain ? 'Signing you out' : 'Sign out?'}</h1>
        <p class="lead">${certain ? 'One moment.' : `You will be signed out of ${PROVIDER_NAME} in this browser.`}</p>
        ${new Markup(form)}
        <button type="submit" form="op.logoutForm" name="logout" value="yes" class="primary"${certain ? html` data-submit-now` : ''}>Sign out</button>
        ${certain ? '' : html`<button type="submit" form="op.logoutForm" class="quiet">Stay signed in</button>`}`);
}

/** The page after sign-out if the client named no other. */
export function signedOutPage() {
  return page('Signed out', html`
        <h1>You are signed out</h1>
        <p class="lead">You can close this page.</p>`);
}

/** Explains a protocol error or an outdated page, with a link to the application if its origin is known. */
export function errorPage(error, description, application) {
  return page('Something went wrong', html`
        <h1>This did not work</h1>
        <p class="lead">${description || 'The provider could not continue this request.'}</p>
        <p class="lead">${application ? html`<a href="${application}">Go back to the application</a>` : 'Go back to the application'} and sign in again.</p>
        <p class="code"><code>${error}</code></p>`);
}
