// Reads the declarations of styles like a browser (CSS Syntax 3): without comments, escapes and quotes, in one pass.

/**
 * The values of each property, the strongest first: `!important` values before all others, and later values before earlier ones. A browser uses
 * the first valid value. `styles`: the declarations of the rules and of the style attribute, the weakest first. Names and values are in lower
 * case, and white space is one space.
 */
export function rankDeclarations(styles: readonly CssDeclarations[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, { important: string[]; normal: string[] }>()
  for (const { name, value } of styles.flat()) {
    const values = found.get(name) ?? { important: [], normal: [] }
    found.set(name, values)
    const plain = value.replace(/ ?! ?important$/, '')
    if (plain === value) values.normal.push(value)
    else values.important.push(plain)
  }
  return new Map(
    [...found].map(([name, { important, normal }]) => [name, [...important.toReversed(), ...normal.toReversed()]]),
  )
}

/** `background` sets the colour and the picture. A missing colour or picture means none. */
function splitShorthand(declaration: Declaration): Declaration[] {
  if (declaration.name !== 'background') return [declaration]
  return ['background-color', 'background-image'].map((name) => ({ name, value: declaration.value }))
}

type Declaration = { readonly name: string; readonly value: string }

/** Matches the start of a comment, an escape, a run of white space, or one character. Each text matches in one way only, so the time is linear. */
const token = /\/\*|\\(?:[\da-f]{1,6}[ \t\r\n\f]?|[^])|[ \t\r\n\f]+|[^]/gy

/** The declarations of one style, in order. */
export type CssDeclarations = readonly Declaration[]

export function readDeclarations(style: string): CssDeclarations {
  const text = style.toLowerCase()
  const found: Declaration[] = []
  let name: string | undefined
  let word = ''
  let quote = ''
  let depth = 0
  /** Whether white space follows `word`. It is kept only if the word continues. */
  let hasBlank = false
  const append = (sign: string) => {
    word += hasBlank && word !== '' ? ` ${sign}` : sign
    hasBlank = false
  }
  const end = () => {
    if (name !== undefined) found.push({ name, value: word })
    name = undefined
    word = ''
    hasBlank = false
    depth = 0
  }
  token.lastIndex = 0
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [sign] = match
    if (sign === '/*' && quote === '') {
      const close = text.indexOf('*/', token.lastIndex)
      token.lastIndex = close < 0 ? text.length : close + 2
    } else if (sign.startsWith('\\')) append(decodeEscape(sign))
    else if (quote !== '') {
      // a string ends at the end of its line
      if (sign === quote || sign.includes('\n')) quote = ''
    } else if (sign === '"' || sign === "'") quote = sign
    else if (sign === ';' && depth === 0) end()
    else if (sign === ':' && name === undefined) {
      name = word
      word = ''
      hasBlank = false
    } else if (/^[ \t\r\n\f]/.test(sign)) hasBlank = true
    else {
      if ('([{'.includes(sign)) depth += 1
      if (')]}'.includes(sign)) depth = Math.max(0, depth - 1)
      append(sign)
    }
  }
  end()
  return found.flatMap(splitShorthand)
}

/** Decodes an escape: `\70` and `\p` mean p. A line break after a backslash disappears. */
function decodeEscape(sign: string): string {
  const code = /^\\[\da-f]/.test(sign) ? Number.parseInt(sign.slice(1), 16) : (sign.codePointAt(1) ?? 0)
  if (code === 10 || code > 0x10ffff) return ''
  return String.fromCodePoint(code).toLowerCase()
}
