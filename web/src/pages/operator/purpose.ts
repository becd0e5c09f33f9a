/** The purpose that this tab keeps. It belongs to one person: another person in the same tab is asked again. */

const KEY = "operator-purpose";
let kept: readonly [subject: string, purpose: string] = ["", ""];

/** The purpose of this person ("sub"); empty if the person has given none in this tab. */
export function readPurpose(subject: string): string {
  try {
    const [owner, purpose] = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    if (owner === subject && typeof purpose === "string") return purpose;
  } catch {
    // Without storage the purpose lasts until the page loads again.
  }
  return kept[0] === subject ? kept[1] : "";
}

export function keepPurpose(subject: string, purpose: string): void {
  kept = [subject, purpose];
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // As above.
  }
}
