// Text from outside, made safe to show on a terminal: it is seen and never drives it.

/**
 * Control characters as their pictures (ESC becomes ␛): C0 and DEL but tab and newline, C1 (U+009B begins a sequence
 * too), and the marks that turn the direction of text.
 */
export function toPrintable(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(/[\p{Cc}\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu, toPicture)
}

/** The same on one line. */
export function toPrintableLine(text: string): string {
  return toPrintable(text).replace(/\s+/g, ' ').trim()
}

function toPicture(character: string): string {
  if (character === '\n' || character === '\t') return character
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : '\uFFFD'
}
