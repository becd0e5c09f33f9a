import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` forwards requests for the edge's routes to this address.
const edge = process.env.VESTIBULE_EDGE_URL ?? "http://127.0.0.1:3000";

// The path of the app on its host. In the program `vestibule` it is below the application that the program guards.
const base = process.env.VESTIBULE_BASE ?? "/";

// Modules that every page needs, in one file: smaller chunks would compress worse. Modules that only some pages need
// (dialogs, cards, the list of facts) stay out of it.
const LIBRARIES = ["react", "react-dom", "scheduler", "wouter", "regexparam", "use-sync-external-store"];
const OURS = [
  "session/",
  "paths",
  "user",
  "words/(?:index|en|language)",
  "ui/(?:Avatar|Button|Doorway|Icon|LanguageSwitch|Notice|Skeleton|ThemeSwitch|theme|visually-hidden)",
  "shell/(?:Boundary|ConnectionBanner|Message|PageSkeleton|Shell|SignOutButton|operator-mark|useScroll)",
];
const CACHE = "@tanstack/(?:query-core/(?!.*Observer)|react-query/.*/QueryClientProvider)";
const SHELL = new RegExp(`/node_modules/(?:(?:${LIBRARIES.join("|")})/|${CACHE})|/src/(?:${OURS.join("|")})`);

// The same for the modules that every guarded page needs. The guard and each page stay separate files.
const BEHIND_THE_GUARD = [
  // The operators' pages load theirs.
  "api/(?!operator)",
  "gen/session/v1/(?!operator)",
  "clock",
  "device",
  "words/(?:devices|times)",
  "ui/(?:Badge|Card|Dialog|Facts|Timestamp)\\.",
  "shell/(?:ExpiryWarning|Failure|Moment|Page|SessionNotices)\\.",
];
const QUERIES = [
  "react-query/.*/(?:useBaseQuery|useQuery|useMutation|suspense|errorBoundaryUtils|IsRestoringProvider|QueryErrorResetBoundary)",
  "query-core/.*/(?:queryObserver|mutationObserver)",
];
const GUARDED = new RegExp(
  `/node_modules/(?:(?:@bufbuild|grpc-web|google-protobuf)/|@tanstack/(?:${QUERIES.join("|")})\\.)` +
    `|/src/(?:${BEHIND_THE_GUARD.join("|")})`,
);

export default defineConfig({
  base,
  plugins: [react()],
  build: {
    target: "es2022",
    // The strict content security policy allows no inline script, style or data: URL.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // scripts/budget.mjs reads it to know what a first visit loads.
    manifest: "manifest.json",
    reportCompressedSize: false,
    // Ships the licence texts of the bundled packages.
    license: { fileName: "licences.md" },
    rolldownOptions: {
      // "use client" is for frameworks that render on a server. These pages render only in the browser.
      checks: { moduleLevelDirective: false },
      output: {
        codeSplitting: {
          groups: [
            { name: "shell", test: SHELL },
            // With its dependencies, this chunk would hold modules of the shell, and public pages would load it all.
            { name: "guarded", test: GUARDED, includeDependenciesRecursively: false },
          ],
        },
      },
    },
  },
  server: {
    proxy: {
      "/api": edge,
      "/session.v1.BrowserSessionService": edge,
      "/session.v1.OperatorSessionService": edge,
    },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/testing/setup.ts"],
    restoreMocks: true,
    // `make test` runs these tests next to suites that keep every core busy. A fault fails again.
    testTimeout: 60_000,
    retry: 1,
  },
});
