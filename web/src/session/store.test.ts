import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ada, down, ok, profileServer, signedOut } from "../testing/server";
import { PATIENT_MS } from "../testing/setup";
import { createSessionStore } from "./store";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function started(...answers: Parameters<typeof profileServer>) {
  const server = profileServer(...answers);
  const store = createSessionStore({ fetch: server.fetch, random: () => 0.5 });
  const stop = store.subscribe(() => {});
  return { server, store, stop };
}

describe("the session store", () => {
  test("is loading until the first answer, then knows the user", async () => {
    const { store, stop } = started(ok);
    expect(store.getSnapshot()).toMatchObject({ isLoading: true, user: null });
    await store.check();
    expect(store.getSnapshot()).toEqual({ user: ada, error: null, isLoading: false, lost: null });
    stop();
  });

  test("takes 204 for signed out, without an error", async () => {
    const { store, stop } = started(signedOut);
    await store.check();
    expect(store.getSnapshot()).toEqual({ user: null, error: null, isLoading: false, lost: null });
    stop();
  });

  test("keeps the user when a check fails, and says why", async () => {
    const { server, store, stop } = started(ok);
    await store.check();
    server.answer(down);
    await store.check();
    expect(store.getSnapshot().user).toEqual(ada);
    expect(store.getSnapshot().error).toMatchObject({
      status: 503,
      code: "ERR_SESSION_SERVICE_UNAVAILABLE",
      retryAfterSeconds: 1,
    });
    stop();
  });

  test("gives a network failure the status 0", async () => {
    const { store, stop } = started("no network");
    await store.check();
    expect(store.getSnapshot().error).toMatchObject({ status: 0, transient: true });
    stop();
  });

  test("takes an answer that is no profile for a failure, not for a user", async () => {
    const { store, stop } = started({ status: 200, body: { name: "nobody" } });
    await store.check();
    expect(store.getSnapshot()).toMatchObject({ user: null, error: { status: 502 } });
    stop();
  });

  test("asks again by itself after a transient failure and forgets the error", async () => {
    const { store, stop } = started(down, ok);
    await store.check();
    expect(store.getSnapshot().error).not.toBeNull();
    await vi.advanceTimersByTimeAsync(1_100);
    expect(store.getSnapshot()).toMatchObject({ user: ada, error: null });
    stop();
  });

  test("does not ask again by itself after an error that will not pass", async () => {
    const { server, store, stop } = started({ status: 400, body: { error: "ERR_PROFILE_HANDLER_FAILURE" } });
    await store.check();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(server.asked).toHaveLength(1);
    stop();
  });

  test("stops asking when no listener remains", async () => {
    const { server, store, stop } = started(down);
    await store.check();
    stop();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(server.asked).toHaveLength(1);
  });

  test("runs one check at a time", async () => {
    const { server, store, stop } = started(ok);
    await Promise.all([store.check(), store.check(), store.check()]);
    expect(server.asked).toHaveLength(1);
    stop();
  });

  test("distinguishes an ended session from no session", async () => {
    const { server, store, stop } = started(ok);
    await store.check();
    server.answer(signedOut);
    await store.check();
    expect(store.getSnapshot()).toMatchObject({ user: null, lost: "ended" });
    stop();
  });

  test("asks again after its session ended: when the tab gets visible, and when another tab finds a signed-in user", async () => {
    const { server, store, stop } = started(ok, signedOut, signedOut, ok);
    await store.check();
    await store.check();
    expect(store.getSnapshot().lost).toBe("ended");
    document.dispatchEvent(new Event("visibilitychange"));
    await store.check();
    expect(server.asked).toHaveLength(3);
    expect(store.getSnapshot().lost).toBe("ended");
    const other = started(ok);
    await vi.waitFor(() => expect(store.getSnapshot()).toMatchObject({ user: ada, lost: null }), PATIENT_MS);
    other.stop();
    stop();
  });

  test("does not ask because another page was opened while it knows who is signed in", async () => {
    const { server, store, stop } = started(ok);
    await store.check();
    const other = started(ok);
    await other.store.check();
    // Messages arrive in order: once the sign-out has arrived, the earlier ones have too.
    other.store.signingOut();
    await vi.waitFor(() => expect(store.getSnapshot().lost).toBe("signed-out"), PATIENT_MS);
    expect(server.asked).toHaveLength(1);
    other.stop();
    stop();
  });

  test("throws away an answer that left before the person signed out", async () => {
    const { store, stop } = started(ok);
    const late = store.check();
    store.signingOut();
    await late;
    expect(store.getSnapshot().user).toBeNull();
    stop();
  });

  test("re-reads the profile at the provider and keeps the user when that fails", async () => {
    const { server, store, stop } = started(ok);
    await store.check();
    server.answer({ status: 502, body: { error: "ERR_PROFILE_HANDLER_FAILURE" } });
    await expect(store.refetch()).rejects.toMatchObject({ status: 502, code: "ERR_PROFILE_HANDLER_FAILURE" });
    expect(server.asked.at(-1)).toBe("/api/auth/me?refetch=true");
    expect(store.getSnapshot()).toMatchObject({ user: ada, error: null });
    stop();
  });
});
