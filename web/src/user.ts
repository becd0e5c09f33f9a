/** Reads a user's claims for the pages. Providers differ: every claim except `sub` may be missing or malformed. */
import type { User } from "./session";

const text = (claim: unknown): string | undefined =>
  typeof claim === "string" && claim.trim() !== "" ? claim.trim() : undefined;

export function displayName(user: User): string {
  const parts = [text(user.given_name), text(user.family_name)].filter(Boolean).join(" ");
  return (
    text(user.name) ??
    (parts || (text(user.preferred_username) ?? text(user.nickname) ?? text(user.email) ?? user.sub))
  );
}

export const pictureOf = (user: User): string | undefined => text(user.picture);
export const emailOf = (user: User): string | undefined => text(user.email);
/** Some providers send the string "true" instead of the boolean. */
export const emailVerified = (user: User): boolean =>
  user.email_verified === true || text(user.email_verified) === "true";
export const organizationOf = (user: User): string | undefined =>
  text(user.org_name) ?? text(user.org_id) ?? text(user.organization);
