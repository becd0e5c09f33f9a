/** The routes of the app. Guarded pages, and the code they need to call the service, load in separate chunks. */
import { lazy, Suspense } from "react";
import { Route, Switch, useLocation } from "wouter";
import { queryClient } from "./app";
import { Home } from "./pages/home/Home";
import { Crash } from "./pages/problems/Crash";
import { NotFound } from "./pages/problems/NotFound";
import { SignInError } from "./pages/problems/SignInError";
import { SignedOut } from "./pages/signed-out/SignedOut";
import { paths } from "./paths";
import { Boundary } from "./shell/Boundary";
import { PageSkeleton } from "./shell/PageSkeleton";
import { Shell } from "./shell/Shell";

const load = {
  account: () => import("./pages/account/Account").then(({ Account }) => ({ default: Account })),
  sessions: () => import("./pages/sessions/Sessions").then(({ Sessions }) => ({ default: Sessions })),
  session: () => import("./pages/session/ThisSession").then(({ ThisSession }) => ({ default: ThisSession })),
};
// Few people may use the operators' pages, so the other pages never load them.
const loadConsole = () => import("./pages/operator/Console").then(({ Console }) => ({ default: Console }));
const isOperatorPage = (path: string) => `${path}/`.startsWith(`${paths.operator}/`);

const Account = lazy(load.account);
const Sessions = lazy(load.sessions);
const ThisSession = lazy(load.session);
const Console = lazy(loadConsole);

/** The guard. Loads the session and the guarded pages in parallel with it. */
const Guarded = lazy(async () => {
  const pages = isOperatorPage(window.location.pathname) ? [loadConsole] : Object.values(load);
  for (const page of pages) page().catch(() => {});
  void import("./api/queries").then(({ currentSessionQuery }) =>
    queryClient.prefetchQuery(currentSessionQuery),
  );
  return { default: (await import("./shell/Guarded")).Guarded };
});

/** The cached data may have caused the crash, so the next visit starts with a new response. */
const readAnew = () => void queryClient.resetQueries();

/** Wraps each page in its own boundary: if a page crashes, the shell and the sign-out button still work. */
function Pages() {
  const [path] = useLocation();
  return (
    <Boundary key={path} fallback={<Crash />} onBroken={readAnew}>
      <Suspense fallback={<PageSkeleton />}>
        <Switch>
          <Route path={paths.account} component={Account} />
          <Route path={paths.sessions} component={Sessions} />
          <Route path={paths.session} component={ThisSession} />
          <Route component={Console} />
        </Switch>
      </Suspense>
    </Boundary>
  );
}

const isAccountPage = new Set<string>([paths.account, paths.sessions, paths.session]);
const withoutSlash = (path: string) => (path.length > 1 ? path.replace(/\/$/, "") : path);

function Content() {
  const [path] = useLocation();
  // The guard stays mounted while the person moves between guarded pages, because it holds the event stream.
  if (isAccountPage.has(withoutSlash(path)) || isOperatorPage(path)) {
    return (
      <Boundary fallback={<Crash />}>
        <Suspense fallback={<PageSkeleton />}>
          <Guarded>
            <Pages />
          </Guarded>
        </Suspense>
      </Boundary>
    );
  }
  return (
    <Boundary key={path} fallback={<Crash />}>
      <Switch>
        <Route path={paths.home} component={Home} />
        <Route path={paths.signedOut} component={SignedOut} />
        <Route path={paths.signInError} component={SignInError} />
        <Route component={NotFound} />
      </Switch>
    </Boundary>
  );
}

export function App() {
  return (
    <Boundary fallback={<Crash />}>
      <Shell>
        <Content />
      </Shell>
    </Boundary>
  );
}
