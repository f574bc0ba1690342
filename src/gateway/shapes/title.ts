// What a payload is about, in one line. It knows names that payloads of many senders have in common, and no sender.
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts'
import { cut } from '../../base/text.ts'
import { replaceTokens } from '../../base/token-forms.ts'

/** The maximum number of objects that are looked at. */
const maxObjects = 300
/** How deep they are searched. */
const maxDepth = 5
const maxTitleChars = 140
const maxLabelChars = 100

/** Names of fields that say what an object is about, the best first. */
const labels: readonly (readonly string[])[] = [
  ['title', 'subject', 'headline', 'summary', 'topic'],
  ['name', 'displayname', 'fullname', 'displaytitle'],
  [
    'text',
    'message',
    'plaintext',
    'body',
    'bodytext',
    'content',
    'comment',
    'description',
    'transcript',
    'errormessage',
  ],
  [
    'tagname',
    'reference',
    'email',
    'emailaddress',
    'primaryemail',
    'recipient',
    'to',
    'login',
    'username',
    'filename',
    'from',
    'ref',
  ],
  ['hostname', 'domain', 'slug', 'path'],
]
/** Further names, such as `dealName`, of the second rank. */
const namesIt =
  /^(?!user|first|last|middle|nick|screen|host|file|event|workspace|account|app|queue|topic|domain|module|class|method|bucket|full|display|alert)[a-z]+(?:name|title|subject)$/
const persons = new Set(
  'sender user actor author owner creator createdby assignee account committer pusher merchant member by'.split(' '),
)
const sites = new Set('repository repo project organization organisation workspace enterprise installation'.split(' '))
/** Objects that surround what happened. */
const around = new Set([
  ...persons,
  ...sites,
  ...`assignees link links meta metadata app application integration label labels milestone head base parent customer billing shipping address
  changes previous previousattributes client clientdetails items config settings context company profile reactions images image options variants
  shop members bot provider headers geo os browser plan`.split(/\s+/),
])
/** Objects that only wrap what happened. */
const wraps = new Set(
  'data object payload event body resource attributes objectattributes detail details entity current value message result properties record annotations commonannotations'.split(
    ' ',
  ),
)
const numbers = ['number', 'iid', 'identifier', 'key', 'ordernumber', 'invoicenumber', 'shortid', 'buildnumber']
const amounts = ['totalprice', 'grandtotal', 'amounttotal', 'total', 'amount', 'price', 'salegross', 'balancegross']
const currencies = ['currency', 'currencycode', 'currencyisocode']
const verbs = ['action', 'eventaction', 'status', 'state', 'conclusion', 'result', 'reason', 'failurereason', 'code']
const eventNames = ['type', 'eventtype', 'event', 'eventname', 'topic', 'objectkind', 'webhookevent', 'alertname']
const isVerb = (word: string) => /(?:[^e]ed|paid|sent|sync|firing|create|update|delete|complete|ended|left)$/.test(word)

type Place = {
  readonly path: readonly string[]
  /** By their names in lower case, without other characters than letters and digits. */
  readonly fields: ReadonlyMap<string, JsonValue>
  /** The number of arrays on the way, besides one at the root. */
  readonly lists: number
}

/** What the payload is about, at most 140 characters; undefined if no field says it. `event`: the event in the words of the sender. */
export function readTitle(payload: JsonValue, event = ''): string | undefined {
  const places = listPlaces(payload)
  const [root] = places
  if (root === undefined) return undefined
  const push = describePush(root, places)
  if (push !== undefined) return toSafe(push)
  const { noun, verb: eventVerb, words } = readEvent(root, event)
  const { place = root, label } = findLabel(places, words) ?? {}
  const main = places.filter(({ path }) => path.every((name) => wraps.has(normalise(name))))
  const parents = places.filter(({ path }) => path.every((name, at) => name === place.path[at])).toReversed()
  const isNumber = label !== undefined && /^#?[A-Z]{0,5}-?\d[\d.-]*$/.test(label)
  const number = isNumber ? label : [...parents, ...main].map(findNumber).find((found) => found !== undefined)
  const verb =
    findWord([root], verbs.slice(0, 2))?.replace(/^(?:create|update|delete)$/, '$&d') ??
    eventVerb ??
    findWord([...main, ...parents], verbs)
  const kind = noun === '' ? findKind(place) : noun
  const amount = [...main, place].map(findAmount).find((found) => found !== undefined)
  const isSaid = verb === undefined || `${kind ?? ''} `.includes(`${verb} `)
  const head = [kind, number, isSaid ? undefined : verb].filter((part) => part !== undefined && part !== '').join(' ')
  if (number === undefined && amount === undefined && label === undefined && verb === undefined) {
    const facts = [...new Set(main.flatMap(listFacts))].slice(0, 3)
    return facts.length === 0 ? undefined : toSafe(facts.join(', '))
  }
  const said = isNumber || label === undefined ? head : joinLabel(head, label, place)
  return toSafe(amount === undefined ? said : `${said}, ${amount}`)
}

const secretName =
  /token|secret|passw|signature|auth|key|credential|cookie|hash|nonce|session|jwt|otp|pin|challenge|code$/

/** `room: kitchen, temperature: 21`: short values of a payload that has none of the known names. */
function listFacts({ fields }: Place): readonly string[] {
  return [...fields].flatMap(([name, value]) => {
    if (secretName.test(name) || typeof value === 'object' || name.length > 30) return []
    const text = typeof value === 'string' ? value.trim() : String(value)
    return text === '' || text.length > 40 || (opaque.test(text) && !/^\d{1,6}$/.test(text)) ? [] : `${name}: ${text}`
  })
}

/** `Issue opened: Login fails`, `star created in shop`, `issue updated by Ada`. */
function joinLabel(head: string, label: string, { path }: Place): string {
  if (head === '') return label
  const names = path.map(normalise)
  const isOwn = head.split(' ').some((word) => names.includes(word))
  if (!isOwn && names.some((name) => persons.has(name))) return `${head} by ${label}`
  return !isOwn && names.some((name) => sites.has(name)) ? `${head} in ${label}` : `${head}: ${label}`
}

/** On one line, without what looks like a secret. */
function toSafe(text: string): string {
  const line = replaceTokens(text, '…').replaceAll(/\s+/g, ' ').trim()
  return cut(line.charAt(0).toUpperCase() + line.slice(1), maxTitleChars)
}

const normalise = (name: string) => name.toLowerCase().replaceAll(/[^a-z\d]/g, '')

/** The objects of a payload, those near the root first. Of an array, only the first item. */
function listPlaces(payload: JsonValue): readonly Place[] {
  const places: Place[] = []
  const open: { value: JsonValue; path: readonly string[]; lists: number }[] = [{ value: payload, path: [], lists: 0 }]
  for (let next = open.shift(); next !== undefined && places.length < maxObjects; next = open.shift()) {
    const { value, path, lists } = next
    if (Array.isArray(value)) {
      if (value[0] !== undefined) open.push({ value: value[0], path, lists: path.length === 0 ? 0 : lists + 1 })
      continue
    }
    if (!isJsonObject(value)) continue
    const fields = new Map<string, JsonValue>()
    for (const [name, item] of Object.entries(value as JsonObject)) {
      const plain = normalise(name)
      if (!fields.has(plain)) fields.set(plain, item)
      if (path.length < maxDepth && typeof item === 'object' && item !== null)
        open.push({ value: item, path: [...path, name], lists })
    }
    places.push({ path, fields, lists })
  }
  return places
}

/** The event in words: those of the sender, or of a field of the payload. `order`, `created` for `orders/create`. */
function readEvent({ fields }: Place, event: string) {
  const own = eventNames.flatMap((name) => {
    const value = fields.get(name)
    return typeof value === 'string' && value.length <= 80 ? value : []
  })
  const words = (event === '' ? (own[0] ?? '') : event)
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => word.length > 1 && !['hook', 'event', 'callback', 'default', 'data', 'json'].includes(word))
  const [first = '', last = ''] = [words[0], words.at(-1)]
  const verb = isVerb(last) ? last : words.length > 1 && isVerb(first) ? first : undefined
  const nouns = [...new Set(words.filter((word) => word !== verb).map(singular))]
  return { noun: nouns.slice(0, 4).join(' '), verb: verb?.replace(/ate$|ete$/, '$&d'), words: words.map(singular) }
}

const singular = (word: string) => (word.length < 4 ? word : word.replace(/ies$/, 'y').replace(/([^sui])s$/, '$1'))

/** Whether the object has the name of the event. */
function isAbout(path: readonly string[], words: readonly string[]): boolean {
  const name = singular(normalise(path.at(-1) ?? ''))
  return name.length > 2 && words.join('').includes(name)
}

/** The best label of all objects. */
function findLabel(places: readonly Place[], words: readonly string[]): { place: Place; label: string } | undefined {
  let best: { place: Place; label: string; score: number } | undefined
  const consider = (place: Place, label: string | undefined, score: number) => {
    if (label !== undefined && (best === undefined || score > best.score)) best = { place, label, score }
  }
  for (const place of places) {
    const { path, fields, lists } = place
    const isOwn = isAbout(path, words)
    const outside = isOwn ? 0 : path.filter((name) => around.has(normalise(name))).length + lists
    const base = 90 - 6 * path.length - 40 * outside + (isOwn ? 30 : 0)
    for (const [rank, names] of labels.entries())
      for (const name of names)
        consider(place, readLabel(fields.get(name)), base - 18 * rank - names.indexOf(name) / 10)
    for (const [name, value] of fields) if (namesIt.test(name)) consider(place, readLabel(value), base - 24)
    consider(place, readPerson(place), base - 24)
  }
  return best
}

function readPerson({ fields }: Place): string | undefined {
  const names = ['firstname', 'lastname']
    .map((name) => readLabel(fields.get(name)))
    .filter((name) => name !== undefined)
  return names.length === 0 ? undefined : names.join(' ')
}

/** Each character can be read in one way only: a sender chooses the text, and the time must not double with each character of it. */
const opaque =
  /^(?:[\da-f]{8}-[\da-f-]{20,}|(?=\S*\d)[\w+/=.:-]{20,}|\d{5,}|\d{4}-\d\d-\d\dT\S*|[\da-f]{16,}|true|false|none|null|n\/a|[a-z]+[._](?=[a-z_])(?:[a-z_]|\.(?=[a-z_]))*)$/i

/** A text that a person can read, on one line: no id, no hash, no time and no part of a program. */
function readLabel(given: JsonValue | undefined): string | undefined {
  const value = isJsonObject(given) ? given['value'] : given
  if (typeof value !== 'string') return undefined
  const [line = ''] = /\S[^\n\r]*/.exec(value.slice(0, 2_000)) ?? []
  const text = line.replaceAll(/<[/@#!]?[a-z\d][^<>]{0,200}>/gi, ' ').trim()
  if (text.length < 2 || opaque.test(text) || /^[{[<]|^\w+:\/\//.test(text)) return undefined
  return cut(text, maxLabelChars)
}

/** What kind of thing it is: its type, or the name of the object. */
function findKind({ path, fields }: Place): string | undefined {
  const name = path.findLast((each) => !wraps.has(normalise(each)))
  if (name !== undefined && !/^\d*$/.test(name)) return toWords(singular(name))
  const types = ['object', 'objectkind', 'entitytype', 'objecttype', 'resourcetype']
  return findWord([{ path, fields, lists: 0 }], types)
}

const toWords = (name: string) =>
  name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll(/[_-]+/g, ' ')
    .toLowerCase()
    .trim()

function findNumber({ fields }: Place): string | undefined {
  for (const name of numbers) {
    const value = fields.get(name)
    const text = typeof value === 'string' || typeof value === 'number' ? String(value) : ''
    if (/^\d{1,9}$/.test(text)) return `#${text}`
    if (/^[A-Z][A-Z\d]{0,14}-[A-Z\d]{1,12}$/.test(text)) return text
  }
  return undefined
}

/** The first of these fields that is a word or two. */
function findWord(places: readonly Place[], names: readonly string[]): string | undefined {
  for (const { fields } of places) {
    for (const name of names) {
      const value = fields.get(name)
      if (typeof value === 'string' && /^[A-Za-z][A-Za-z _-]{2,28}$/.test(value)) return toWords(value)
    }
  }
  return undefined
}

/** An amount with its currency. A whole number is left out: some senders count cents, and no field says which. */
function findAmount({ fields }: Place): string | undefined {
  const currency = currencies.map((name) => fields.get(name)).find((value) => typeof value === 'string')
  if (typeof currency !== 'string' || !/^[A-Za-z]{3}$/.test(currency)) return undefined
  const text = amounts
    .map((name) => String(fields.get(name) ?? ''))
    .find((value) => /^-?\d{1,12}\.\d{1,3}$/.test(value))
  return text === undefined ? undefined : `${text} ${currency.toUpperCase()}`
}

/** `push to main by ada: Mend the door`: a branch, and commits or who pushed them. */
function describePush({ fields }: Place, places: readonly Place[]): string | undefined {
  const ref = fields.get('ref')
  if (typeof ref !== 'string' || !(fields.has('commits') || fields.has('pusher') || fields.has('headcommit')))
    return undefined
  const branch = readLabel(ref.replace(/^refs\/(?:heads|tags)\//, ''))
  if (branch === undefined) return undefined
  const find = (...names: readonly string[]) => places.find(({ path }) => names.includes(normalise(path.at(-1) ?? '')))
  const pusher = find('pusher') ?? find('sender', 'user')
  const who = ['fullname', 'name', 'username', 'login'].map((name) => readLabel(pusher?.fields.get(name))).find(Boolean)
  const by = who ?? readLabel(fields.get('username'))
  const message = readLabel((find('headcommit') ?? find('commits'))?.fields.get('message'))
  return `push to ${branch}${by === undefined ? '' : ` by ${by}`}${message === undefined ? '' : `: ${message}`}`
}
