import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

/** How long a test waits for what comes later: one second is too short on a machine whose cores are busy. */
export const PATIENT_MS = 20_000;
configure({ asyncUtilTimeout: PATIENT_MS });

afterEach(() => {
  cleanup();
  // A test may run without a DOM, as a server does.
  if (typeof sessionStorage === "undefined") return;
  sessionStorage.clear();
  localStorage.clear();
});
