/** The time, for components that show how it passes. */
import { useEffect, useState } from "react";

/** The server's time now, renewed every `everyMs`. `skewMs` is the server's clock minus the browser's. */
export function useServerNow(skewMs: number, everyMs: number): number {
  const [browserNow, setBrowserNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setBrowserNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return browserNow + skewMs;
}
