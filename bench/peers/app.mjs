// An application behind express-openid-connect, set up as its documentation says: one page tells who is signed in. Started by
// express.mjs, which gives it one setting, PEER, in JSON; with a `redisPort` its sessions are in Redis, else in its cookie.
import { RedisStore } from 'connect-redis';
import express from 'express';
import oidc from 'express-openid-connect';
import { createClient } from 'redis';

const { port, idp, secret, callback, ready, profile, bytes, redisPort } = JSON.parse(process.env.PEER);
const FILLING = ',"filling":""';

const client = redisPort && createClient({ url: `redis://127.0.0.1:${redisPort}` });
await client?.connect();

const app = express();
app.get(ready, (_request, response) => response.send('ready\n')); // asked before anybody can be signed in
app.use(oidc.auth({
  baseURL: `http://127.0.0.1:${port}`,
  issuerBaseURL: idp.issuer,
  clientID: idp.clientId,
  clientSecret: idp.clientSecret,
  clientAuthMethod: 'client_secret_basic',
  secret,
  authRequired: false,
  authorizationParams: { response_type: 'code', scope: 'openid profile email' },
  routes: { callback },
  ...(client && { session: { store: new RedisStore({ client }) } }),
}));

let filling; // makes the answer as long as those it is compared with; the same for everybody here
app.get(profile, oidc.requiresAuth(), ({ oidc: { user } }, response) => {
  filling ??= '.'.repeat(Math.max(0, bytes - JSON.stringify(user).length - FILLING.length));
  response.json({ ...user, filling });
});
app.listen(port, '127.0.0.1');
