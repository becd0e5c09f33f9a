import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Where `npm run dev` sends what only the edge can answer.
const edge = process.env.VESTIBULE_EDGE_URL ?? "http://127.0.0.1:3000";

// What every page needs, in one file: split by which later chunk shares which piece it would compress worse. What only some
// pages need (dialogs, cards, the list of facts) stays out of it.
const LIBRARIES = ["react", "react-dom", "scheduler", "wouter", "regexparam", "use-sync-external-store"];
const OURS = [
  "session/",
  "paths",
  "user",
  "words/(?:index|en|language)",
  "ui/(?:Avatar|Button|Doorway|Icon|LanguageSwitch|Notice|Skeleton|ThemeSwitch|theme|visually-hidden)",
  "shell/(?:Boundary|ConnectionBanner|Message|PageSkeleton|Shell|SignOutButton|useScroll)",
];
const SHELL = new RegExp(`/node_modules/(?:${LIBRARIES.join("|")})/|/src/(?:${OURS.join("|")})`);

// What every page behind the guard needs, for the same reason in one file. The guard itself and each page stay files of their own.
const BEHIND_THE_GUARD = [
  "api/",
  "gen/",
  "clock",
  "device",
  "words/(?:devices|times)",
  "ui/(?:Badge|Card|Dialog|Facts|Timestamp)\\.",
  "shell/(?:ExpiryWarning|Failure|Moment|Page|TheftNotice)\\.",
];
const GUARDED = new RegExp(
  `/node_modules/(?:@bufbuild|grpc-web|google-protobuf)/|/src/(?:${BEHIND_THE_GUARD.join("|")})`,
);

export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2022",
    // The strict content security policy allows no inline script, style or data: URL.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // scripts/budget.mjs reads it to know what a first visit loads.
    manifest: "manifest.json",
    reportCompressedSize: false,
    // What is bundled goes out with the texts of its licences.
    license: { fileName: "licences.md" },
    rolldownOptions: {
      // "use client" is for frameworks that render on a server. These pages are rendered in the browser alone.
      checks: { moduleLevelDirective: false },
      output: {
        codeSplitting: {
          groups: [
            { name: "shell", test: SHELL },
            // What the shell needs as well would come with it, and the public pages would load it all.
            { name: "guarded", test: GUARDED, includeDependenciesRecursively: false },
          ],
        },
      },
    },
  },
  server: {
    proxy: { "/api": edge, "/session.v1.BrowserSessionService": edge },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/testing/setup.ts"],
    restoreMocks: true,
  },
});
