// Characters of text from outside that nobody would see, or that would change how a line reads.

/** The characters that `toPrintable` of the terminal replaces; the page imports nothing of the gateway. */
const unseen =
  /(?![\t\n])(?!(?<=\p{Emoji})[\uFE0E\uFE0F])(?!(?<=[\p{Emoji}\uFE0F])\u200D\p{Emoji})(?!(?<=(?![\p{ASCII}\p{Script=Latin}])[\p{L}\p{M}])[\u200C\u200D](?![\p{ASCII}\p{Script=Latin}])[\p{L}\p{M}])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu

/**
 * What a terminal shows as a mark too: controls, ANSI escapes among them, marks of direction, tags, fillers. `\u001b` becomes ␛, other
 * controls their picture, and all others their number. Line breaks and tabs stay.
 */
export function markUnseen(text: string): string {
  return text.replace(unseen, (character) => {
    const code = character.codePointAt(0) ?? 0
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨${code.toString(16).padStart(4, '0')}⟩`
  })
}
