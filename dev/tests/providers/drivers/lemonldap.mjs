// LemonLDAP::NG (Debian): its portal with the demonstration accounts, its configuration as the Manager writes it.
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { submit } from '../html.mjs';
import { startProgram, startSite } from './program.mjs';

const PORTAL = '/usr/share/lemonldap-ng/portal/htdocs/index.psgi';
const TEMPLATES = '/usr/share/lemonldap-ng/portal/templates';
const WORKERS = 4; // the edge may fetch keys while it checks a logout token

/** One of the demonstration backend's accounts. */
const ACCOUNT = { username: 'dwho', password: 'dwho', name: 'Doctor Who', email: 'dwho@badwolf.org' };

const ini = (folder) => `[all]
logLevel = notice
logger = Lemonldap::NG::Common::Logger::Std
userLogger = Lemonldap::NG::Common::Logger::Std
checkTime = 1
[configuration]
type = File
dirName = ${join(folder, 'conf')}
[portal]
staticPrefix = /static
templateDir = ${TEMPLATES}
languages = en
[handler]
status = 0
`;

function configuration(folder, origin, { registration, client, accessTokenSecs }, keys) {
  const files = (name) => ({ Directory: join(folder, name), LockDirectory: join(folder, name, 'lock') });
  return {
    cfgNum: 1, cfgAuthor: 'the suite', cfgDate: '1', cfgVersion: '2.16.1',
    portal: `${origin}/`, domain: '127.0.0.1', cookieName: 'lemonldap', securedCookie: 0, timeout: 72_000, whatToTrace: 'uid',
    authentication: 'Demo', userDB: 'Same', passwordDB: 'Demo', registerDB: 'Null', demoExportedVars: { cn: 'cn', mail: 'mail', uid: 'uid' },
    globalStorage: 'Apache::Session::File', globalStorageOptions: files('sessions'),
    persistentStorage: 'Apache::Session::File', persistentStorageOptions: files('psessions'),
    locationRules: {}, exportedHeaders: {}, exportedVars: {}, applicationList: {},
    issuerDBOpenIDConnectActivation: 1, issuerDBOpenIDConnectPath: '^/oauth2/', issuerDBOpenIDConnectRule: '1',
    oidcServiceAllowAuthorizationCodeFlow: 1, oidcServiceKeyIdSig: keys.kid, oidcServicePrivateKeySig: keys.privateKey, oidcServicePublicKeySig: keys.publicKey,
    oidcServiceAccessTokenExpiration: accessTokenSecs, oidcServiceMetaDataAuthorizeURI: 'authorize', oidcServiceMetaDataTokenURI: 'token', oidcServiceMetaDataUserInfoURI: 'userinfo',
    oidcServiceMetaDataJWKSURI: 'jwks', oidcServiceMetaDataEndSessionURI: 'logout', oidcServiceMetaDataRegistrationURI: 'register', oidcServiceMetaDataCheckSessionURI: 'checksession.html',
    oidcServiceMetaDataIntrospectionURI: 'introspect', oidcServiceMetaDataAuthnContext: { 'loa-1': 1, 'loa-2': 2 },
    oidcRPMetaDataOptions: {
      vestibule: {
        oidcRPMetaDataOptionsClientID: client.id, oidcRPMetaDataOptionsClientSecret: client.secret, oidcRPMetaDataOptionsDisplayName: 'Vestibule',
        oidcRPMetaDataOptionsRedirectUris: registration.redirectUri, oidcRPMetaDataOptionsPostLogoutRedirectUris: registration.postLogoutRedirectUri,
        oidcRPMetaDataOptionsIDTokenSignAlg: 'RS256', oidcRPMetaDataOptionsIDTokenExpiration: 3600, oidcRPMetaDataOptionsAccessTokenExpiration: accessTokenSecs,
        // After its consent page, a sign-out ends on its own page, whose state determines the next redirect.
        oidcRPMetaDataOptionsRefreshToken: 1, oidcRPMetaDataOptionsBypassConsent: 1, oidcRPMetaDataOptionsLogoutBypassConfirm: 0,
      },
    },
    oidcRPMetaDataExportedVars: { vestibule: { name: 'cn', email: 'mail', preferred_username: 'uid' } },
  };
}

let made = 0;
function newKeys() {
  const pem = (key, type) => key.export({ type, format: 'pem' });
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { kid: `key-${(made += 1)}`, privateKey: pem(privateKey, 'pkcs8'), publicKey: pem(createPublicKey(privateKey), 'spki') };
}

export const lemonldap = {
  name: 'LemonLDAP::NG',
  version: '2.16',
  exceptions: { backChannel: { offered: 'it only has front-channel logout', symptom: /backchannel_logout_supported/ } },

  async start(options) {
    const site = await startSite('llng', ({ folder, port, origin }) => {
      for (const name of ['conf', 'sessions/lock', 'psessions/lock']) mkdirSync(join(folder, name), { recursive: true });
      writeFileSync(join(folder, 'lemonldap-ng.ini'), ini(folder));
      writeFileSync(join(folder, 'conf/lmConf-1.json'), JSON.stringify(configuration(folder, origin, options, newKeys())));
      return startProgram('lemonldap-ng', 'starman', ['--listen', `127.0.0.1:${port}`, '--workers', String(WORKERS), '--no-default-middleware', PORTAL], {
        env: { ...process.env, LLNG_DEFAULTCONFFILE: join(folder, 'lemonldap-ng.ini') }, cwd: folder, ready: `${origin}/.well-known/openid-configuration`,
      });
    });
    return {
      ...site,
      account: ACCOUNT,
      answer(page) {
        if (page.text.includes('name="password"')) return submit(page, 'name="password"', { user: ACCOUNT.username, password: ACCOUNT.password });
        if (page.text.includes('name="confirm"')) return submit(page, 'name="confirm"', { confirm: '1' });
        return undefined;
      },
    };
  },
};
