import { useEffect, useLayoutEffect, useRef } from "react";
import { useLocation } from "wouter";

/**
 * After a link, the page starts at its top or at the part that its fragment names. For back and forward, the browser
 * restores the scroll position.
 */
export function useScroll(): void {
  const [path] = useLocation();
  const pushed = useRef(false);
  useEffect(() => {
    // The router dispatches an event of this name for every push.
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
