/** The person's answer to the consent question. This browser stores the answer and nothing else. */

export type Answer = "yes" | "no";

const KEY = "analytics";

export function answered(): Answer | null {
  try {
    const answer = localStorage.getItem(KEY);
    return answer === "yes" || answer === "no" ? answer : null;
  } catch {
    // Without storage the answer would be lost and the question would come back on every page: count it as a no.
    return "no";
  }
}

export function keepAnswer(answer: Answer): void {
  try {
    localStorage.setItem(KEY, answer);
  } catch {
    // Without storage the answer lasts until the page is closed.
  }
}
