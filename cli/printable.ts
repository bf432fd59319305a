/** Makes text of unknown origin harmless to a terminal. */

/**
 * Spells out control characters other than line ends and tabs: a bundle from elsewhere must not be
 * able to clear the screen, or write over the line that calls a run invalid.
 */
export function printable(text: string): string {
  return text.replace(/(?![\n\t])\p{Cc}/gu, (character) => {
    const code = character.charCodeAt(0);
    return `\\x${code.toString(16).padStart(2, "0")}`;
  });
}
