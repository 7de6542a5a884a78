import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** The window's policy, so that `npm run preview:fake` breaks where the real window would. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self' ipc: http://ipc.localhost",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * KaTeX lists each font in three formats. Every web view that Candor runs in reads the first; the
 * others would add 900 kB to the program.
 */
const woff2Only: Plugin = {
  name: "woff2-only",
  enforce: "pre",
  transform: (code, id) =>
    id.includes("katex") && id.includes(".css")
      ? { code: code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\("[a-z]+"\)/g, ""), map: null }
      : null,
};

export default defineConfig(({ mode }) => ({
  plugins: [woff2Only, svelte()],
  clearScreen: false,
  // Without this, Vitest would resolve Svelte's server build and nothing could mount.
  resolve: mode === "test" ? { conditions: ["browser"] } : {},
  server: { port: 5173, strictPort: true, host: "127.0.0.1" },
  preview: {
    port: 4173,
    strictPort: true,
    host: "127.0.0.1",
    headers: { "Content-Security-Policy": contentSecurityPolicy },
  },
  build: {
    target: "safari16",
    outDir: mode === "fake" ? "dist-fake" : "dist",
    modulePreload: { polyfill: false },
    // An inlined asset would be a data: address, which the policy forbids for fonts and scripts.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
  },
  test: {
    environment: "jsdom",
    include: ["tests/**/*.test.ts"],
    setupFiles: ["tests/setup.ts"],
    // The table of colours is read by a test.
    css: true,
    // A limit for what hangs, not a speed.
    testTimeout: 30_000,
  },
}));
