import { expect, test, vi } from "vitest";
import { endInParts, type Part } from "./ending-loop";

function service(...parts: (Part | Error)[]) {
  return vi.fn(async () => {
    const next = parts.shift();
    if (next instanceof Error || !next) throw next ?? new Error("no more parts");
    return next;
  });
}
const part = (endedCount: number, complete = false): Part => ({ endedCount, complete });

test("goes on until nothing is left, and reports each part", async () => {
  const endPart = service(part(200), part(0), part(17, true));
  const onEnded = vi.fn();
  expect(await endInParts({ endPart, isStopped: () => false, onEnded })).toBe(true);
  expect(onEnded.mock.calls).toEqual([[200], [0], [17]]);
});

test("a stop lets the running part finish and begins no other", async () => {
  const endPart = service(part(200), part(200), part(1, true));
  const onEnded = vi.fn();
  const isStopped = () => endPart.mock.calls.length === 2;
  expect(await endInParts({ endPart, isStopped, onEnded })).toBe(false);
  expect(endPart).toHaveBeenCalledTimes(2);
  expect(onEnded).toHaveBeenCalledTimes(2);
});

test("a stop during the last part changes nothing: all have ended", async () => {
  const endPart = service(part(3, true));
  expect(await endInParts({ endPart, isStopped: () => true, onEnded: () => {} })).toBe(true);
});

test("a failure keeps the count of the parts before it", async () => {
  const onEnded = vi.fn();
  const ending = endInParts({
    endPart: service(part(5), new Error("down")),
    isStopped: () => false,
    onEnded,
  });
  await expect(ending).rejects.toThrow("down");
  expect(onEnded.mock.calls).toEqual([[5]]);
});
