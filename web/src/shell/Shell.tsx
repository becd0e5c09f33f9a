/** The frame of every page: brand, navigation, connection banner, theme switch. */
import { lazy, type ReactNode, Suspense } from "react";
import { Link, useLocation, useRoute } from "wouter";
import { useProject } from "../analytics/project";
import { paths } from "../paths";
import { here, loginUrl, useSession } from "../session";
import { Avatar } from "../ui/Avatar";
import { LinkButton } from "../ui/Button";
import { LanguageSwitch } from "../ui/LanguageSwitch";
import { ThemeSwitch } from "../ui/ThemeSwitch";
import { displayName, pictureOf } from "../user";
import { words } from "../words";
import { chooseLanguage, LANGUAGES } from "../words/language";
import { Boundary } from "./Boundary";
import { ConnectionBanner } from "./ConnectionBanner";
import { useIsOperator } from "./operator-mark";
import styles from "./Shell.module.css";
import { SignOutButton } from "./SignOutButton";
import { useScroll } from "./useScroll";

const Analytics = lazy(() => import("../analytics/Analytics"));

export function Shell({ children }: { children: ReactNode }) {
  const { user, isLoading } = useSession();
  const project = useProject();
  const isOperator = useIsOperator(user?.sub);
  // The return address of "Sign in" depends on the current page.
  useLocation();
  useScroll();
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
                {isOperator && (
                  <Tab to={paths.operator} below>
                    {words.nav.operator}
                  </Tab>
                )}
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
        {children}
        {project && user && (
          // Errors in analytics stay invisible to the person.
          <Boundary key={project.person} fallback={null}>
            <Suspense fallback={null}>
              <Analytics project={project} />
            </Suspense>
          </Boundary>
        )}
      </main>
      <footer className={styles.footer}>
        <div className={`${styles.inner} ${styles.foot}`}>
          <span dir="ltr">{words.product}</span>
          <div className={styles.switches}>
            <LanguageSwitch
              label={words.languages}
              languages={LANGUAGES}
              current={words.language}
              choose={chooseLanguage}
            />
            <ThemeSwitch label={words.theme.label} names={words.theme.names} />
          </div>
        </div>
      </footer>
    </div>
  );
}

/** A sign-in from a guarded page returns to it; from any other page, to the account. */
function returnToFromHere(): string {
  const guarded = [paths.account, paths.operator];
  return guarded.some((path) => window.location.pathname.startsWith(path)) ? here() : paths.account;
}

/** A page of the navigation; with `below`, also the pages below it. */
function Tab({ to, below = false, children }: { to: string; below?: boolean; children: string }) {
  const [here] = useRoute(below ? `${to}/*?` : to);
  return (
    <li>
      <Link to={to} aria-current={here ? "page" : undefined}>
        {children}
      </Link>
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
