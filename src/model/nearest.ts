/** The known word that was probably meant, or undefined when none is near. Case does not count. */
export function nearestOf(word: string, known: readonly string[]): string | undefined {
  const asked = word.toLowerCase()
  // a third of the letters may be wrong; `message` for `messageTemplate` is a beginning, not a slip
  let best: { word: string; distance: number } | undefined
  for (const candidate of known) {
    const name = candidate.toLowerCase()
    const isBeginning = asked.length >= 4 && name.startsWith(asked)
    const distance = isBeginning ? 1 : toDistance(asked, name)
    if (distance > Math.max(1, Math.floor(asked.length / 3))) continue
    if (best === undefined || distance < best.distance) best = { word: candidate, distance }
  }
  return best?.word
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function toDistance(a: string, b: string): number {
  // a name far longer than any key is no slip, and must not cost a table of its size
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
