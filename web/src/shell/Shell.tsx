/** What every page stands in: brand, navigation, the connection banner, the colour switch. */
import { Link, NavLink, Outlet, ScrollRestoration, useLocation } from "react-router";
import { paths } from "../paths";
import { here, loginUrl, useSession } from "../session";
import { Avatar } from "../ui/Avatar";
import { LinkButton } from "../ui/Button";
import { ThemeSwitch } from "../ui/ThemeSwitch";
import { displayName, pictureOf } from "../user";
import { words } from "../words";
import { ConnectionBanner } from "./ConnectionBanner";
import styles from "./Shell.module.css";
import { SignOutButton } from "./SignOutButton";

export function Shell() {
  const { user, isLoading } = useSession();
  useLocation();
  return (
    <div className={styles.shell}>
      <header className={styles.header}>
        <a className={styles.skip} href="#content">
          {words.skip}
        </a>
        <div className={`${styles.inner} ${styles.bar}`}>
          <Link to={paths.home} className={styles.brand}>
            <Brand />
            <span dir="ltr">{words.product}</span>
          </Link>
          {user && (
            <nav className={styles.nav} aria-label={words.nav.label}>
              <ul>
                <Tab to={paths.account}>{words.nav.account}</Tab>
                <Tab to={paths.sessions}>{words.nav.sessions}</Tab>
                <Tab to={paths.session}>{words.nav.session}</Tab>
              </ul>
            </nav>
          )}
          <div className={styles.who}>
            {user && <Avatar name={displayName(user)} picture={pictureOf(user)} size={28} />}
            {user && <SignOutButton small />}
            {!user && !isLoading && (
              <LinkButton small href={loginUrl(returnToFromHere())}>
                {words.signIn}
              </LinkButton>
            )}
          </div>
        </div>
        <ConnectionBanner className={styles.banner} />
      </header>
      <main id="content" className={`${styles.inner} ${styles.main}`}>
        <Outlet />
      </main>
      <footer className={styles.footer}>
        <div className={`${styles.inner} ${styles.foot}`}>
          <span dir="ltr">{words.product}</span>
          <ThemeSwitch label={words.theme.label} names={words.theme.names} />
        </div>
      </footer>
      <ScrollRestoration />
    </div>
  );
}

/** Signing in from a guarded page leads back to it; from any other, to the account. */
function returnToFromHere(): string {
  return window.location.pathname.startsWith(paths.account) ? here() : paths.account;
}

function Tab({ to, children }: { to: string; children: string }) {
  return (
    <li>
      <NavLink to={to} end>
        {children}
      </NavLink>
    </li>
  );
}

function Brand() {
  return (
    <svg width="26" height="26" viewBox="0 0 26 26" fill="none" aria-hidden="true">
      <path d="M4 23V12a9 9 0 0 1 18 0v11" stroke="currentColor" strokeWidth="2.4" strokeLinecap="round" />
      <path d="M9.5 23V12.5a3.5 3.5 0 0 1 7 0V23z" fill="currentColor" opacity="0.45" />
    </svg>
  );
}
