/** Ends sessions part by part, because one call ends a bounded number. */

export interface Part {
  endedCount: number;
  complete: boolean;
}

export interface LoopOptions {
  /** Ends the next part. */
  endPart: () => Promise<Part>;
  /** Asked after each part: a part that the service has begun cannot be taken back. */
  isStopped: () => boolean;
  onEnded: (count: number) => void;
}

/** Returns whether all sessions have ended; false if the operator stopped it. */
export async function endInParts({ endPart, isStopped, onEnded }: LoopOptions): Promise<boolean> {
  for (;;) {
    const { endedCount, complete } = await endPart();
    onEnded(endedCount);
    if (complete) return true;
    if (isStopped()) return false;
  }
}
