/**
 * posthog-js, fenced in. Loaded only after a yes.
 *
 * Everything typed and every text is masked before it leaves the page; addresses lose query and fragment; nothing is
 * stored in the browser; no script is loaded from anywhere; all requests go to our own origin. What fails fails alone:
 * the library retries what a server in trouble refused and drops what it never wanted.
 */
import { AnalyticsExtensions, SessionReplayExtensions } from "posthog-js/dist/extension-bundles";
import { type CaptureResult, PostHog } from "posthog-js/dist/module.slim.no-external";
import "posthog-js/dist/posthog-recorder";
import { isRecorded } from "./pages";
import type { Project } from "./project";

const ADDRESS = /^(?:https?:\/\/|\/)\S*$/;

/** An address without what may be about somebody: query and fragment. Anything else as it is. */
export function plainAddress<T>(value: T): T | string {
  return typeof value === "string" && ADDRESS.test(value) ? value.replace(/[?#].*$/s, "") : value;
}

/** The same for every address in an event, however deep: the library keeps several, and may keep more one day. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return plainAddress(value);
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  // What the recorder saw of the page has its addresses masked where it is recorded.
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, name === "$snapshot_data" ? inner : plain(inner)]),
  );
}

function fenced(event: CaptureResult | null): CaptureResult | null {
  return event && isRecorded(window.location.pathname) ? (plain(event) as CaptureResult) : null;
}

export interface Recorder {
  /** Goes on or waits, as the page that is shown allows. */
  follow: (path: string) => void;
  /** Ends for good. */
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
