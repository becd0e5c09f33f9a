/** Shows a time relative to now; the tooltip and a machine-readable attribute hold the exact time. */
export function Timestamp({ ms, said, exact }: { ms: number; said: string; exact: string }) {
  return (
    <time dateTime={new Date(ms).toISOString()} title={exact}>
      {said}
    </time>
  );
}
