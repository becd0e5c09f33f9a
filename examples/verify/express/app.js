// Lets a request pass if its X-Auth-Assertion is valid, and greets its user.
import express from 'express';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const { PORT = 8080, VESTIBULE_ISSUER: issuer, AUDIENCE: audience } = process.env;
if (!issuer || !audience) throw new Error('set VESTIBULE_ISSUER and AUDIENCE'); // jose would skip these checks
const { KEYS_URL = `${issuer}/.well-known/vestibule/jwks.json` } = process.env;

const keys = createRemoteJWKSet(new URL(KEYS_URL), { cacheMaxAge: 300_000, cooldownDuration: 10_000 });
const requiredClaims = ['exp', 'sub', 'email'];
const rules = { algorithms: ['ES256'], typ: 'JWT', issuer, audience, requiredClaims, clockTolerance: 5 };

async function requireUser(request, response, next) {
  try {
    const { payload } = await jwtVerify(request.get('x-auth-assertion') ?? '', keys, rules);
    request.user = { subject: payload.sub, email: payload.email };
  } catch {
    return response.status(401).send('No valid assertion\n');
  }
  return next();
}

const app = express();
app.use(requireUser);
app.get('/', (request, response) => response.type('text').send(`Hello ${request.user.email}\n`));
app.listen(PORT, '127.0.0.1');
