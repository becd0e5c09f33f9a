/** Texts that the service stores: it counts them in bytes of UTF-8 and accepts no control characters. */

/** The most bytes of a purpose, and of a message to a person. */
export const MOST_BYTES = 500;

export const byteLength = (text: string): number => new TextEncoder().encode(text).length;

/** The text as the service accepts it: with a space for line breaks and other control characters. */
export const cleanText = (text: string): string => text.replace(/\p{Cc}+/gu, " ").trim();
