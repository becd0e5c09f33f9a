/** The map of the app. Pages behind the guard, and all they need to talk to the service, come in their own chunks. */
import { createBrowserRouter, type RouteObject } from "react-router";
import { queryClient } from "./app";
import { Home } from "./pages/home/Home";
import { Crash } from "./pages/problems/Crash";
import { NotFound } from "./pages/problems/NotFound";
import { SignInError } from "./pages/problems/SignInError";
import { SignedOut } from "./pages/signed-out/SignedOut";
import { paths } from "./paths";
import { PageSkeleton } from "./shell/PageSkeleton";
import { Shell } from "./shell/Shell";

/** Starts reading the session while the page's code is still on its way; the page shows the answer or the failure. */
async function prefetchCurrentSession(): Promise<null> {
  const { currentSessionQuery } = await import("./api/queries");
  void queryClient.prefetchQuery(currentSessionQuery);
  return null;
}

export const routes: RouteObject[] = [
  {
    element: <Shell />,
    errorElement: <Crash />,
    HydrateFallback: () => null,
    children: [
      {
        errorElement: <Crash />,
        HydrateFallback: PageSkeleton,
        children: [
          { path: paths.home, Component: Home },
          { path: paths.signedOut, Component: SignedOut },
          { path: paths.signInError, Component: SignInError },
          {
            lazy: async () => ({ Component: (await import("./shell/Guarded")).Guarded }),
            loader: prefetchCurrentSession,
            children: [
              {
                path: paths.account,
                lazy: async () => ({ Component: (await import("./pages/account/Account")).Account }),
              },
              {
                path: paths.sessions,
                lazy: async () => ({ Component: (await import("./pages/sessions/Sessions")).Sessions }),
              },
              {
                path: paths.session,
                lazy: async () => ({ Component: (await import("./pages/session/ThisSession")).ThisSession }),
              },
            ],
          },
          { path: "*", Component: NotFound },
        ],
      },
    ],
  },
];

export const createRouter = () => createBrowserRouter(routes);
