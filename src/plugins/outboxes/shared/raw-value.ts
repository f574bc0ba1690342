// Finds the text of a value inside a valid JSON text, so that a number keeps its digits and a body its bytes. No function is recursive, because
// a body may have any depth.

/** The text of the member at a path of keys, unchanged; undefined if there is none. */
export function readRawValue(text: string, path: readonly string[]): string | undefined {
  let at = skipSpace(text, 0)
  for (const name of path) {
    const found = findMember(text, at, name)
    if (found === undefined) return undefined
    at = found
  }
  return text.slice(at, findEnd(text, at))
}

/** The texts of the items of an array, unchanged. An empty list if the text is not an array. */
export function readRawItems(text: string): string[] {
  const items: string[] = []
  let at = skipSpace(text, 0)
  if (text[at] !== '[') return items
  at = skipSpace(text, at + 1)
  while (at < text.length && text[at] !== ']') {
    const end = findEnd(text, at)
    items.push(text.slice(at, end))
    at = skipSpace(text, end)
    if (text[at] === ',') at = skipSpace(text, at + 1)
  }
  return items
}

/** The place of the value of a member. The last of several equal names counts, as in `JSON.parse`. */
function findMember(text: string, at: number, name: string): number | undefined {
  if (text[at] !== '{') return undefined
  let found: number | undefined
  let key = skipSpace(text, at + 1)
  while (text[key] === '"') {
    const end = findEnd(text, key)
    const value = skipSpace(text, skipSpace(text, end) + 1)
    if (JSON.parse(text.slice(key, end)) === name) found = value
    const after = skipSpace(text, findEnd(text, value))
    key = text[after] === ',' ? skipSpace(text, after + 1) : text.length
  }
  return found
}

/** The place after the value that begins at `at`. */
function findEnd(text: string, at: number): number {
  const first = text[at]
  if (first === '"') return findStringEnd(text, at)
  if (first !== '{' && first !== '[') return findWordEnd(text, at)
  let depth = 0
  for (let place = at; place < text.length; place += 1) {
    const char = text[place]
    if (char === '"') place = findStringEnd(text, place) - 1
    else if (char === '{' || char === '[') depth += 1
    else if (char === '}' || char === ']') depth -= 1
    if (depth === 0) return place + 1
  }
  return text.length
}

function findStringEnd(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text[end - 1 - slashes] === '\\') slashes += 1
    if (slashes % 2 === 0) return end + 1
  }
  return text.length
}

const wordEnd = /[\s,\]}]|$/g

function findWordEnd(text: string, at: number): number {
  wordEnd.lastIndex = at
  return wordEnd.exec(text)?.index ?? text.length
}

function skipSpace(text: string, at: number): number {
  let place = at
  for (let code = text.charCodeAt(place); code === 32 || (code >= 9 && code <= 13); code = text.charCodeAt(place)) {
    place += 1
  }
  return place
}
