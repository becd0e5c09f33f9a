import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Where `npm run dev` sends what only the edge can answer.
const edge = process.env.VESTIBULE_EDGE_URL ?? "http://127.0.0.1:3000";

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
