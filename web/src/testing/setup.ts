import { cleanup } from "@testing-library/react";
import { afterEach } from "vitest";

afterEach(() => {
  cleanup();
  // A test may run without a DOM, as a server does.
  if (typeof sessionStorage === "undefined") return;
  sessionStorage.clear();
  localStorage.clear();
});
