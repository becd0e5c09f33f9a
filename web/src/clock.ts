/** The current time, for components that show elapsed or remaining time. */
import { useEffect, useState } from "react";

/** The server's current time, updated every `everyMs`. `skewMs` is the server's clock minus the browser's. */
export function useServerNow(skewMs: number, everyMs: number): number {
  const [browserNow, setBrowserNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setBrowserNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return browserNow + skewMs;
}
