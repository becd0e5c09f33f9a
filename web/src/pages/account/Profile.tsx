import type { ReactNode } from "react";
import type { User } from "../../session";
import { Avatar } from "../../ui/Avatar";
import { Badge } from "../../ui/Badge";
import { displayName, emailOf, emailVerified, organizationOf, pictureOf } from "../../user";
import { words } from "../../words";
import styles from "./Account.module.css";

const say = words.account;

/** The person: picture or initials, name, e-mail address, organization. */
export function Profile({ user, action }: { user: User; action: ReactNode }) {
  const name = displayName(user);
  const email = emailOf(user);
  const organization = organizationOf(user);
  return (
    <section className={styles.profile} aria-label={say.title}>
      <Avatar name={name} picture={pictureOf(user)} size={88} />
      <div className={styles.who}>
        {/* A name keeps its own text direction, even if the page runs the other way. */}
        <h2 className={styles.name} title={name}>
          <bdi>{name}</bdi>
        </h2>
        {email ? (
          <p className={styles.email}>
            <bdi className={styles.address}>{email}</bdi>
            <Verified verified={emailVerified(user)} />
          </p>
        ) : (
          <p className={styles.email}>{say.noEmail}</p>
        )}
        {organization && (
          <p className={styles.organization}>
            {say.organization}: <bdi>{organization}</bdi>
          </p>
        )}
      </div>
      {action}
    </section>
  );
}

function Verified({ verified }: { verified: boolean }) {
  if (!verified) return <Badge quiet>{say.unverified}</Badge>;
  return <Badge icon="check">{say.verified}</Badge>;
}
