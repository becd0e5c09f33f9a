// The provider's log by grant: each sign-in begins one, and every refresh token leads to the one it came from.

/** Grants with all that was granted and refused in them, in order. A refusal of a token that is not known is nobody's. */
export function refreshesOf(events) {
  const grants = new Map();
  const owners = new Map(); // refresh token → grant
  for (const line of events.filter(({ type, kind }) => type === 'provider' && ['granted', 'refused'].includes(kind))) {
    const grant = line.grant ?? owners.get(line.presented);
    if (!grant) continue;
    if (line.refresh) owners.set(line.refresh, grant);
    grants.set(grant, [...grants.get(grant) ?? [], line]);
  }
  return grants;
}
