// The provider's log by grant: each sign-in starts a grant, and each refresh token belongs to its grant.

/** The grants with their issued and refused tokens in order. Refusals of unknown tokens are ignored. */
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
