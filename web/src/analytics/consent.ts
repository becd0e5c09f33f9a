/** What the person said when asked; kept in this browser, and nothing else is. */

export type Answer = "yes" | "no";

const KEY = "analytics";

export function answered(): Answer | null {
  try {
    const answer = localStorage.getItem(KEY);
    return answer === "yes" || answer === "no" ? answer : null;
  } catch {
    // Without storage an answer could not be kept, and asking each time would be no question: it counts as a no.
    return "no";
  }
}

export function keepAnswer(answer: Answer): void {
  try {
    localStorage.setItem(KEY, answer);
  } catch {
    // The answer lasts as long as the page.
  }
}
