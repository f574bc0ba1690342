/** The first `max` UTF-16 units and an ellipsis, never half a code point; the text itself where it fits. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  const last = text.charCodeAt(max - 1)
  const splitsPair = last >= 0xd800 && last <= 0xdbff
  return `${text.slice(0, splitsPair ? max - 1 : max)}…`
}
