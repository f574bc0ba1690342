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
  /** The compounds of a selector. The last one is for the element, and the others are for its ancestors. */
  readonly compounds: readonly Compound[]
  /** For each compound, whether `>` follows it, so that only the direct parent may match it. */
  readonly isDirect: readonly boolean[]
  readonly weight: number
  readonly style: CssDeclarations
}

/** The maximum number of compounds that are read. A real mail has fewer. Of a longer selector, only the end is read. */
const maxCompounds = 12
const maxSelectorChars = 500
/** The limits of selectors in one mail and in one nested rule, and of blocks inside one another. Beyond them, nothing is shown. */
const maxSelectors = 20_000
const maxNested = 1_000
const maxDepth = 20
/** The limit of comparisons between elements and selectors in one mail. After that, nothing is shown. */
const maxSteps = 1_000_000

const nothingShown = readDeclarations('display:none!important')
const hideAll: Rule = {
  compounds: [{ tag: '', names: [], attributes: [] }],
  isDirect: [],
  weight: Number.MAX_SAFE_INTEGER,
  style: nothingShown,
}

/** The styles of an element, the weakest first. */
type Stylesheet = (element: DomNode) => readonly CssDeclarations[]

export function createStylesheet(sheets: readonly string[]): Stylesheet {
  const byKey = new Map<string, { readonly rule: Rule; readonly order: number }[]>()
  const count = { selectors: 0 }
  const parsed = sheets.flatMap((sheet) => parseSheet(sheet, count))
  const sorted = parsed.toSorted((one, other) => one.weight - other.weight)
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

  /** Whether ancestors of the element match the compounds up to the position `at`. */
  function hasAncestors(element: DomNode, rule: Rule, at: number): boolean {
    if (at < 0) return true
    for (let outer = element.parent; outer && steps <= maxSteps; outer = outer.parent) {
      if (matches(outer, rule.compounds[at]) && hasAncestors(outer, rule, at - 1)) return true
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
        if (matches(element, compounds.at(-1)) && hasAncestors(element, each.rule, compounds.length - 2)) {
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

/** A block of a sheet. `selectors`: those of the rule that the block is or is part of; undefined outside of rules. */
type Block = { readonly selectors: readonly string[] | undefined; readonly isApplied: boolean }

const top: Block = { selectors: undefined, isApplied: true }

/** Reads the rules of a sheet, including nested rules and those in blocks of `@media` and `@supports`. */
function parseSheet(sheet: string, count: { selectors: number }): Rule[] {
  const rules: Rule[] = []
  const around: Block[] = []
  let block = top
  let prelude = ''
  /** The declarations of the block after its last nested rule, or all of them if it has none. */
  let style = ''
  const endStyle = () => {
    const { selectors = [] } = block
    count.selectors += selectors.length
    if (count.selectors <= maxSelectors && block.isApplied) rules.push(...parseRules(selectors, style))
    style = ''
  }
  for (const [text] of sheet.matchAll(part)) {
    if (text.startsWith('/*') || text === '<!--' || text === '-->') continue
    if (text === '{') {
      if (style.trim() !== '') endStyle()
      around.push(block)
      const at = /^\s*@([\w-]+)([^]*)/.exec(prelude)
      block =
        at === null
          ? { ...block, selectors: nest(block.selectors, prelude) }
          : { ...block, isApplied: block.isApplied && isApplied(at[1]?.toLowerCase() ?? '', at[2] ?? '') }
      if (around.length > maxDepth || (block.selectors === undefined && at === null)) return [...rules, hideAll]
      prelude = ''
    } else if (text === '}') {
      style += prelude
      endStyle()
      block = around.pop() ?? top
      prelude = ''
    } else if (text === ';') {
      if (block.selectors !== undefined) style += `${prelude};`
      prelude = ''
    } else prelude += text
  }
  // the sheet may end inside its last rule
  style += prelude
  endStyle()
  return count.selectors > maxSelectors ? [...rules, hideAll] : rules
}

/** The selectors of a rule inside the rule of `parents`. Undefined if there are too many. */
function nest(parents: readonly string[] | undefined, prelude: string): readonly string[] | undefined {
  const own = readSelectors(prelude)
  if (parents === undefined) return own
  if (parents.length * own.length > maxNested) return undefined
  return own.flatMap((selector) => {
    // a `&` inside `:not()` or the like is not read: then the selector counts without its parents
    if (!selector.includes('&')) return prelude.includes('&') ? selector : parents.map((each) => `${each} ${selector}`)
    return parents.map((each) => selector.replace(/[^\s>+~&]*&[^\s>+~]*/g, (word) => joinReference(each, word)))
  })
}

/** `.h&` means `&.h`. A tag with `&` counts without the parent. */
function joinReference(parent: string, word: string): string {
  const rest = word.replaceAll('&', '')
  return /^\w/.test(rest) ? rest : `${parent.slice(-maxSelectorChars)}${rest}`
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

/** Pseudo-elements, and pseudo-classes of states that no text has when a mail is opened. */
const neverTrue = /::|:(?:hover|active|focus[\w-]*|visited|target|checked|disabled|before|after|first-l[a-z]+)\b/

/** The selectors of a list, without the conditions of pseudo-classes. */
function readSelectors(prelude: string): string[] {
  const plain = decodeEscapes(prelude.toLowerCase())
    .replaceAll(':root', 'html')
    .replace(/:(?:is|where)\(([^(),]*)\)/g, '$1')
    // the condition of any other pseudo-class counts as true
    .replace(/\([^()]*\)?/g, '')
  return plain.split(',').map((whole) => whole.slice(-maxSelectorChars))
}

function parseRules(selectors: readonly string[], text: string): Rule[] {
  const style = readDeclarations(text)
  return selectors.flatMap((whole) => {
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
