/** The session library, from `src/session`: one module per file, so that a bundler drops what an app does not use. */
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: at("."),
  publicDir: false,
  build: {
    target: "es2022",
    emptyOutDir: true,
    minify: false,
    lib: { entry: [at("../src/session/index.ts"), at("../src/session/core.ts")], formats: ["es"] },
    rolldownOptions: {
      // "use client" stays in place: each module is a separate file.
      checks: { moduleLevelDirective: false },
      external: [/^react($|\/)/],
      output: {
        preserveModules: true,
        preserveModulesRoot: at("../src/session"),
        entryFileNames: "[name].js",
      },
    },
  },
});
