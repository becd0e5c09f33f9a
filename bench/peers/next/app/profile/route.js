import { auth0, bytes, origin } from '../../auth0.mjs';

const FILLING = ',"filling":""';

let filling; // makes the answer as long as those it is compared with; the same for everybody here
export async function GET() {
  const session = await auth0.getSession();
  if (!session) return Response.redirect(`${origin}/auth/login`, 302);
  filling ??= '.'.repeat(Math.max(0, bytes - JSON.stringify(session.user).length - FILLING.length));
  return Response.json({ ...session.user, filling });
}
