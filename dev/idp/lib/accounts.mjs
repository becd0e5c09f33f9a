// The two users who can sign in, and more that a command line can add. Their passwords are public: `make run` and the
// sign-in page show those of the two.

const UPDATED_AT = 1_760_000_000; // a fixed moment, so that profiles do not change from run to run

export const ACCOUNTS = [
  {
    sub: 'ada-4c1e7b',
    email: 'ada@example.test',
    password: 'analytical-engine',
    name: 'Ada Lovelace',
    given_name: 'Ada',
    family_name: 'Lovelace',
    preferred_username: 'ada',
    locale: 'en-GB',
  },
  {
    sub: 'grace-9d02af',
    email: 'grace@example.test',
    password: 'nanosecond-wire',
    name: 'Grace Hopper',
    given_name: 'Grace',
    family_name: 'Hopper',
    preferred_username: 'grace',
    locale: 'en-US',
    picture: '/assets/grace.svg',
  },
];

const bySubject = new Map(ACCOUNTS.map((account) => [account.sub, account]));
const byEmail = new Map(ACCOUNTS.map((account) => [account.email, account]));

/** An added user in this many groups: `number` counts from 1. */
export function personOf(number, groups = 0) {
  const name = `person-${number}`;
  const memberships = Array.from({ length: groups }, (_, at) => `/organisation/department-${at + 1}/everybody`);
  return { ...(groups > 0 && { groups: memberships }), sub: name, email: `${name}@example.test`, password: `${name}-password`, name: `Person ${number}`, given_name: 'Person', preferred_username: name };
}

/** Adds this many users, each in this many groups. */
export function addCrowd(count, groups) {
  for (let number = 1; number <= count; number += 1) {
    const person = personOf(number, groups);
    bySubject.set(person.sub, person);
    byEmail.set(person.email, person);
  }
}

/** The account with this e-mail address and password, or nothing. */
export function authenticate(email, password) {
  const account = byEmail.get(email.trim().toLowerCase());
  return account?.password === password ? account : undefined;
}

/** An account as oidc-provider needs it: its identifier and its claims. */
export function findAccount(issuer, sub) {
  const account = bySubject.get(sub);
  if (!account) return undefined;
  return {
    accountId: sub,
    async claims() {
      const { password: _, picture, ...profile } = account;
      return {
        ...profile,
        ...(picture ? { picture: `${issuer}${picture}` } : {}),
        email_verified: true,
        updated_at: UPDATED_AT,
      };
    },
  };
}
