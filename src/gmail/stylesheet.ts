// Decides which rules of the `<style>` elements apply to an element, by its tag, classes, id and attributes. A selector that is too complex
// counts as applied, so text that may be hidden is left out.
import type { DomNode } from 'html-to-text'
import { type CssDeclarations, readDeclarations } from './css.ts'

type Compound = {
  readonly tag: string
  readonly names: readonly string[]
  readonly attributes: readonly { readonly name: string; readonly operator: string; readonly value: string }[]
}

type Rule = {
  /** A selector. Its last compound is for the element, and the others are for its ancestors. `>` means the direct parent. */
  readonly compounds: readonly Compound[]
  readonly isDirect: readonly boolean[]
  readonly weight: number
  readonly style: CssDeclarations
}

/** The maximum number of compounds that are read. A real mail has fewer. Of a longer selector, only the end is read. */
const maxCompounds = 12
const maxSelectorChars = 500
/** The limit of comparisons between elements and selectors in one mail. After that, nothing is shown. */
const maxSteps = 1_000_000

const nothingShown = readDeclarations('display:none!important')

/** The styles of an element, the weakest first. */
type Stylesheet = (element: DomNode) => readonly CssDeclarations[]

export function createStylesheet(sheets: readonly string[]): Stylesheet {
  const byKey = new Map<string, { readonly rule: Rule; readonly order: number }[]>()
  const sorted = sheets.flatMap(parseSheet).toSorted((one, other) => one.weight - other.weight)
  for (const [order, rule] of sorted.entries()) {
    const key = chooseKey(rule.compounds.at(-1))
    const known = byKey.get(key)
    if (known === undefined) byKey.set(key, [{ rule, order }])
    else known.push({ rule, order })
  }
  let steps = 0

  function matches(element: DomNode, compound: Compound | undefined): boolean {
    steps += 1
    if (compound === undefined) return false
    const { tag, names, attributes } = compound
    if (tag !== '' && tag !== element.name) return false
    const own = listNames(element)
    return names.every((name) => own.includes(name)) && attributes.every((each) => hasAttribute(element, each))
  }

  function isAround(element: DomNode, rule: Rule, at: number): boolean {
    if (at < 0) return true
    for (let outer = element.parent; outer && steps <= maxSteps; outer = outer.parent) {
      if (matches(outer, rule.compounds[at]) && isAround(outer, rule, at - 1)) return true
      if (rule.isDirect[at] === true) return false
    }
    return false
  }

  return (element) => {
    const found: { readonly rule: Rule; readonly order: number }[] = []
    for (const key of new Set(['', element.name ?? '', ...listNames(element)])) {
      for (const each of byKey.get(key) ?? []) {
        if (steps > maxSteps) return [nothingShown]
        const { compounds, style } = each.rule
        if (matches(element, compounds.at(-1)) && isAround(element, each.rule, compounds.length - 2)) {
          steps += style.length
          found.push(each)
        }
      }
    }
    return found.toSorted((one, other) => one.order - other.order).map(({ rule }) => rule.style)
  }
}

function chooseKey(compound: Compound | undefined): string {
  return compound?.names[0] ?? compound?.tag ?? ''
}

/** The names of an element, as `.class` and `#id` in lower case: without a doctype, their case does not matter. */
function listNames({ attribs }: DomNode): string[] {
  const classes = String(attribs?.['class'] ?? '')
    .toLowerCase()
    .split(/\s+/)
    .slice(0, 50)
  const id = String(attribs?.['id'] ?? '')
    .toLowerCase()
    .trim()
  return [...classes.filter((name) => name !== '').map((name) => `.${name}`), ...(id === '' ? [] : [`#${id}`])]
}

function hasAttribute({ attribs }: DomNode, { name, operator, value }: Compound['attributes'][number]): boolean {
  if (attribs?.[name] === undefined) return false
  const own = String(attribs[name]).toLowerCase()
  if (operator === '=') return own === value
  if (operator === '~=') return own.split(/\s+/).includes(value)
  if (operator === '|=') return own === value || own.startsWith(`${value}-`)
  if (operator === '^=') return own.startsWith(value)
  if (operator === '$=') return own.endsWith(value)
  return operator === '' || own.includes(value)
}

const part =
  /\/\*[^]*?(?:\*\/|$)|<!--|-->|\\[^]|"(?:[^"\\\n]|\\[^])*"?|'(?:[^'\\\n]|\\[^])*'?|[{};]|[^{};"'\\/<-]+|[^]/g

/** Reads the rules of a sheet, including those in blocks of `@media` and `@supports`. */
function parseSheet(sheet: string): Rule[] {
  const rules: Rule[] = []
  const around: boolean[] = []
  let prelude = ''
  /** The declarations of the rule that is read, and how many braces are open in them. */
  let style: string | undefined
  let depth = 0
  for (const [text] of sheet.matchAll(part)) {
    if (text.startsWith('/*') || text === '<!--' || text === '-->') continue
    if (style !== undefined) {
      if (text === '{') depth += 1
      if (text !== '}' || depth > 0) style += text
      else {
        if (around.every(Boolean)) rules.push(...parseRule(prelude, style))
        prelude = ''
        style = undefined
      }
      if (text === '}' && depth > 0) depth -= 1
    } else if (text === '{') {
      const at = /^\s*@([\w-]+)([^]*)/.exec(prelude)
      if (at === null) style = ''
      else {
        around.push(isApplied(at[1]?.toLowerCase() ?? '', at[2] ?? ''))
        prelude = ''
      }
    } else if (text === '}') {
      around.pop()
      prelude = ''
    } else if (text === ';') prelude = ''
    else prelude += text
  }
  // the sheet may end inside its last rule
  return style === undefined || !around.every(Boolean) ? rules : [...rules, ...parseRule(prelude, style)]
}

function isApplied(name: string, condition: string): boolean {
  return name === 'media' ? isShownMedium(condition) : ['supports', 'layer', 'container', 'scope'].includes(name)
}

const viewPx = 800

/** Whether a media query is true on a screen of 800 pixels in light colours. */
export function isShownMedium(query: string): boolean {
  if (query.trim() === '') return true
  return query
    .toLowerCase()
    .split(',')
    .some((each) => {
      const isNot = /^\s*not\b/.test(each)
      const isOther = /^\s*(?:not|only)?\s*(?:print|speech|tty|tv|handheld|projection|braille|embossed|aural)\b/.test(
        each,
      )
      const widths = [...each.matchAll(/\((min|max)-(?:device-)?width\s*:\s*([\d.]+)\s*(px|r?em)?\s*\)/g)]
      const isWide = widths.every(([, bound, number, unit]) => {
        const px = Number(number) * (unit?.endsWith('em') ? 16 : 1)
        return bound === 'min' ? viewPx >= px : viewPx <= px
      })
      const isDark = /prefers-color-scheme\s*:\s*dark/.test(each)
      return (!isOther && isWide && !isDark) !== isNot
    })
}

/** Pseudo-elements, and pseudo-classes that apply only after an action of the reader. */
const neverTrue = /::|:(?:hover|active|focus[\w-]*|visited|target|checked|disabled|before|after|first-l[a-z]+)\b/

function parseRule(prelude: string, text: string): Rule[] {
  const style = readDeclarations(text)
  const plain = decodeEscapes(prelude.toLowerCase())
    .replaceAll(':root', 'html')
    .replace(/:(?:is|where)\(([^(),]*)\)/g, '$1')
    // the condition of any other pseudo-class counts as true
    .replace(/\([^()]*\)?/g, '')
  return plain.split(',').flatMap((whole) => {
    const selector = whole.slice(-maxSelectorChars)
    const { compounds, isDirect } = parseSelector(selector)
    if (compounds.length === 0 || neverTrue.test(selector)) return []
    const weight = compounds.reduce((sum, each) => sum + toWeight(each), 0)
    // only the element itself is read if the selector is too long
    return [{ compounds: compounds.slice(compounds.length > maxCompounds ? -1 : 0), isDirect, weight, style }]
  })
}

function parseSelector(selector: string): Pick<Rule, 'compounds' | 'isDirect'> {
  const words = selector
    .replace(/:[\w-]+/g, '')
    .replace(/\[[^\]]*\]/g, (attribute) => attribute.replace(/\s+/g, ''))
    .replace(/[>+]|~(?!=)/g, ' $& ')
    .split(/\s+/)
    .filter((word) => word !== '')
  const compounds: Compound[] = []
  const isDirect: boolean[] = []
  for (const word of words) {
    if (word === '>') isDirect[compounds.length - 1] = true
    // preceding siblings count as present
    else if (word === '+' || word === '~') compounds.pop()
    else compounds.push(parseCompound(word))
  }
  return { compounds, isDirect }
}

function parseCompound(word: string): Compound {
  const [, tag = ''] = /^([^.#[*]*)/.exec(word) ?? []
  const bare = word.replace(/\[[^\]]*\]?/g, '')
  const attributes = [...word.matchAll(/\[([^\]~|^$*=]+)(?:([~|^$*]?=)["']?([^\]"']*)["']?)?[^\]]*\]?/g)]
  return {
    tag,
    names: bare.match(/[.#][^.#]+/g) ?? [],
    attributes: attributes.map(([, name = '', operator = '', value = '']) => ({ name, operator, value })),
  }
}

function toWeight({ tag, names, attributes }: Compound): number {
  const ids = names.filter((name) => name.startsWith('#')).length
  return ids * 10_000 + (names.length - ids + attributes.length) * 100 + (tag === '' ? 0 : 1)
}

/** Decodes escapes: `\68 idden` means `hidden`. */
function decodeEscapes(text: string): string {
  return text.replace(/\\(?:([\da-f]{1,6})\s?|([^]))/g, (_, digits?: string, sign = '') => {
    const code = Number.parseInt(digits ?? '', 16)
    return digits === undefined ? sign : code > 0x20 && code <= 0x10ffff ? String.fromCodePoint(code).toLowerCase() : ''
  })
}
