/**
 * Wraps posthog-js in privacy limits. Loaded only after consent.
 *
 * Input and text are masked before they leave the page. Addresses lose query and fragment. Nothing is stored in the
 * browser, no script comes from elsewhere, and all requests go to our own origin. Errors do not affect the app:
 * the library retries server errors and drops batches that the server rejects.
 */
import { AnalyticsExtensions, SessionReplayExtensions } from "posthog-js/dist/extension-bundles";
import { type CaptureResult, PostHog } from "posthog-js/dist/module.slim.no-external";
import "posthog-js/dist/posthog-recorder";
import { isRecorded } from "./pages";
import type { Project } from "./project";

const ADDRESS = /^(?:https?:\/\/|\/)\S*$/;

/** Removes query and fragment of an address, because they may hold personal data. Leaves other values unchanged. */
export function plainAddress<T>(value: T): T | string {
  return typeof value === "string" && ADDRESS.test(value) ? value.replace(/[?#].*$/s, "") : value;
}

/** Applies this to every address in an event, at any depth: the library stores several, and may add more. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return plainAddress(value);
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  // Addresses inside snapshots are masked when they are recorded.
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, name === "$snapshot_data" ? inner : plain(inner)]),
  );
}

function fenced(event: CaptureResult | null): CaptureResult | null {
  return event && isRecorded(window.location.pathname) ? (plain(event) as CaptureResult) : null;
}

export interface Recorder {
  /** Resumes or pauses, depending on whether the current page may be recorded. */
  follow: (path: string) => void;
  /** Stops the recording permanently. */
  stop: () => void;
}

export function startRecording({ token, person }: Project): Recorder {
  const posthog = new PostHog();
  let recording = true;
  posthog.init(token, {
    api_host: `${window.location.origin}/ingest`,
    bootstrap: { distinctID: person, isIdentifiedID: true },
    person_profiles: "identified_only",
    persistence: "memory",
    disable_external_dependency_loading: true,
    advanced_disable_feature_flags: true,
    disable_surveys: true,
    autocapture: false,
    capture_pageview: "history_change",
    capture_pageleave: true,
    mask_all_text: true,
    mask_all_element_attributes: true,
    mask_personal_data_properties: true,
    save_campaign_params: false,
    save_referrer: false,
    respect_dnt: true,
    request_batching: true,
    __extensionClasses: {
      ...SessionReplayExtensions,
      historyAutocapture: AnalyticsExtensions.historyAutocapture,
    },
    session_recording: {
      maskAllInputs: true,
      maskTextSelector: "*",
      maskAllElementAttributes: true,
      maskCapturedNetworkRequestFn: (request) => ({ ...request, name: String(plainAddress(request.name)) }),
      blockSelector: "img",
      recordCrossOriginIframes: false,
      recordHeaders: false,
      recordBody: false,
      compress_events: true,
    },
    before_send: fenced,
  });
  return {
    follow(path) {
      const wanted = isRecorded(path);
      if (wanted === recording) return;
      recording = wanted;
      if (wanted) posthog.startSessionRecording();
      else posthog.stopSessionRecording();
    },
    stop() {
      posthog.stopSessionRecording();
      posthog.opt_out_capturing();
    },
  };
}
