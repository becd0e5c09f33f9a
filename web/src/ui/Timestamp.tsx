/** A moment, said relative to now; the exact time is one hover (and one machine-readable attribute) away. */
export function Timestamp({ ms, said, exact }: { ms: number; said: string; exact: string }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={exact}>
      {said}
    </time>
  );
}
