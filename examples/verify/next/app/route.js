import { readUser } from '../user.js';

export async function GET(request) {
  const user = await readUser(request.headers);
  return user ? new Response(`Hello ${user.email}\n`) : new Response('No valid assertion\n', { status: 401 });
}
