import { auth0 } from './auth0.mjs';

export const proxy = (request) => auth0.middleware(request);

export const config = { matcher: ['/profile', '/auth/:path*', '/api/auth/:path*'] };
