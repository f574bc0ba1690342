// Text: cut, compared with known words, and made safe to show on a terminal.

/** The first `max` UTF-16 units and an ellipsis, never half a code point. A text that fits is returned unchanged. */
export function cut(text: string, max: number): string {
  return text.length <= max ? text : `${takeStart(text, max)}…`
}

/** At most the first `max` UTF-16 units, never half a code point. */
export function takeStart(text: string, max: number): string {
  return text.slice(0, findCharacterStart(text, max))
}

/** At most the last `max` UTF-16 units, never half a code point. */
export function takeEnd(text: string, max: number): string {
  const from = Math.max(0, text.length - max)
  return text.slice(findCharacterStart(text, from) === from ? from : from + 1)
}

/** The index, or the one before it if the index is inside a code point. */
export function findCharacterStart(text: string, index: number): number {
  const before = text.charCodeAt(index - 1)
  const after = text.charCodeAt(index)
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff ? index - 1 : index
}

/**
 * Plain data whose texts are well-formed: half of a code point, which strict receivers refuse, becomes U+FFFD. The same value if nothing changes.
 */
export function toWellFormed<T>(value: T): T
export function toWellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) {
    const items = value.map((item) => toWellFormed<unknown>(item))
    return items.every((item, at) => item === value[at]) ? value : items
  }
  if (typeof value !== 'object' || value === null || !isPlain(value)) return value
  const before = Object.entries(value)
  const after = before.map(([key, item]) => [key, toWellFormed<unknown>(item)] as const)
  return after.every(([, item], at) => item === before[at]?.[1]) ? value : Object.fromEntries(after)
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Where to cut two texts so that both show their first difference: `lead` characters before it. 0 if none has more than `max` characters. */
export function findDivergence(one: string, other: string, { max, lead }: { max: number; lead: number }): number {
  if (Math.max(one.length, other.length) <= max) return 0
  let same = 0
  while (same < one.length && one[same] === other[same]) same += 1
  return Math.max(0, same - lead)
}

/** At most `max` characters, beginning at `from` or at the half of a code point before it, with … in place of what is left out. */
export function cutFrom(text: string, at: number, max: number): string {
  const from = findCharacterStart(text, at)
  const part = takeStart(text.slice(from), max)
  return `${from > 0 ? '…' : ''}${part}${from + part.length < text.length ? '…' : ''}`
}

/** A number with its noun, and verb if given: `1 request`, `2 requests`. `many`: without it, `one` with an s. */
export function formatQuantity(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/**
 * The text without the slashes at both ends. One pass reads it, because a regular expression would take quadratic time in the number of slashes
 * inside.
 */
export function trimSlashes(text: string): string {
  let from = 0
  let to = text.length
  while (from < to && text[from] === '/') from += 1
  while (to > from && text[to - 1] === '/') to -= 1
  return text.slice(from, to)
}

/** The known word that was probably meant, or undefined if no word is similar. Case is ignored. */
export function findNearest(word: string, known: readonly string[]): string | undefined {
  const asked = word.toLowerCase()
  // a third of the letters may be wrong; a word that is the beginning of a known word is similar too: `message` for `messageTemplate`
  let best: { word: string; distance: number } | undefined
  for (const candidate of known) {
    const name = candidate.toLowerCase()
    const isBeginning = asked.length >= 4 && name.startsWith(asked)
    const distance = isBeginning ? 1 : countEdits(asked, name)
    if (distance > Math.max(1, Math.floor(asked.length / 3))) continue
    if (best === undefined || distance < best.distance) best = { word: candidate, distance }
  }
  return best?.word
}

/** Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function countEdits(a: string, b: string): number {
  // a name that is much longer than any key is not a typo, and must not cost a table of its size
  if (Math.abs(a.length - b.length) > 20) return Infinity
  const at = (row: readonly number[] | undefined, column: number): number => row?.[column] ?? Infinity
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, index) => index)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(rows[i - 1], j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swaps = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = swaps ? at(rows[i - 2], j - 2) + 1 : Infinity
      row.push(Math.min(at(rows[i - 1], j) + 1, at(row, j - 1) + 1, replaced, swapped))
    }
    rows.push(row)
  }
  return at(rows[a.length], b.length)
}

/**
 * Invisible characters, and characters that change how others are read: controls except tab and line feed, direction marks, tags, fillers and line
 * separators. Joiners and variation selectors count only where no emoji or script needs them. The character class comes first, because each log line
 * is searched: with the conditions first, this took a quarter of the time of a small request.
 */
const unseenCharacter =
  /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800](?<![\t\n])(?<!\p{Emoji}[\uFE0E\uFE0F])(?!(?<=[\p{Emoji}\uFE0F]\u200D)\p{Emoji})(?!(?<=(?![\p{ASCII}\p{Script=Latin}])[\p{L}\p{M}][\u200C\u200D])(?![\p{ASCII}\p{Script=Latin}])[\p{L}\p{M}])/gu

/** ASCII without controls, and the arrow of log lines. This test takes a fraction of the time of the search. */
const plainText = /^[\n -~→]*$/

/** Replaces each invisible character. */
export function replaceInvisible(text: string, toReplacement: (character: string) => string): string {
  return plainText.test(text) ? text : text.replace(unseenCharacter, toReplacement)
}

/**
 * Replaces invisible characters: ESC becomes ␛, other ASCII controls become their pictures, and all others become U+FFFD. CRLF becomes a line
 * feed.
 */
export function toPrintable(text: string): string {
  return replaceInvisible(text.replaceAll('\r\n', '\n'), toControlPicture)
}

/** Like `toPrintable`, but on one line. */
export function toPrintableLine(text: string): string {
  return toPrintable(text).replace(/\s+/g, ' ').trim()
}

function toControlPicture(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : '\uFFFD'
}
