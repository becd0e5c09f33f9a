import { useEffect, useLayoutEffect, useRef } from "react";
import { useLocation } from "wouter";

/**
 * A page one comes to by a link starts at its top, or at the part its fragment names. Back and forward are left to
 * the browser, which remembers where each page stood.
 */
export function useScroll(): void {
  const [path] = useLocation();
  const pushed = useRef(false);
  useEffect(() => {
    // The router tells of every push by an event of this name.
    const onPush = () => {
      pushed.current = true;
    };
    window.addEventListener("pushState", onPush, { capture: true });
    return () => window.removeEventListener("pushState", onPush, { capture: true });
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the path is what this is about
  useLayoutEffect(() => {
    if (!pushed.current) return;
    pushed.current = false;
    const part = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    if (part) part.scrollIntoView();
    else window.scrollTo(0, 0);
  }, [path]);
}
