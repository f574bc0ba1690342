// A shape describes the payloads of one event: it is a tree of their fields with the kinds of their values, counted. A shape has no value of a
// payload except the words of a vocabulary (names.ts). It is bounded, whatever a sender sends.
import type { SentObject, SentValue } from '../../base/json.ts'
import { findDigits, SentNumber } from '../../base/sent-number.ts'
import { findForm, type Form, isFieldName, isVocabulary, isVocabularyWord } from './names.ts'

export const kinds = ['null', 'boolean', 'number', 'string', 'array', 'object'] as const
export type Kind = (typeof kinds)[number]

/** Times are milliseconds since the epoch. */
type Seen = { count: number; first: number; last: number }

/** The facts about one place of the payloads. They change while the shape learns. */
export type Shape = {
  readonly kinds: Map<Kind, Seen>
  /** The number of objects whose fields were read. A field that fewer objects have is optional. */
  opened: number
  readonly fields: Map<string, Shape>
  /** The shape of the values of all other keys: keys of a map, keys that do not read like names of fields, and keys beyond `maxFields`. */
  others: Shape | undefined
  /** True: the keys differ from object to object, so all of them are in `others`. */
  isMap: boolean
  /** The shape of all items of the arrays. */
  items: Shape | undefined
  /** The values of a field with a vocabulary. Undefined: the field has no vocabulary, too many values, or a value that is no word. */
  words: Map<string, number> | undefined
  /** True: some numbers were so long that code gets them as texts; see `toHeldNumber`. */
  hasLongNumbers: boolean
  /** The form that all texts have. */
  form: Form | undefined
  /** True: the limits left something out below this place. */
  isPartial: boolean
}

/** The maximum number of places and of words in the shape of one event. At this limit, its text has about 200 kB. */
const maxPlaces = 2_000
const maxWords = 12
const maxFields = 200
const maxDepth = 16
/** The maximum number of objects and arrays that are read in one payload, and of items in each array. */
const maxVisits = 5_000
const maxItems = 50
/**
 * A place is a map if at least `openedOfMap` objects have at least `fewestOfMap` different fields in all, with values of one kind, and if an object has
 * on average a smaller share of these fields than `sharedOfMap`.
 */
const fewestOfMap = 16
const openedOfMap = 5
const sharedOfMap = 0.25
/** A large object makes its place forget the fields that fewer objects than this have, or a smaller share than `sharedOfMap`. */
const fewestOfCommon = 2

/** `field`: the name of the field, which may have a vocabulary. */
export function createShape(field = ''): Shape {
  return {
    kinds: new Map(),
    opened: 0,
    fields: new Map(),
    others: undefined,
    isMap: false,
    items: undefined,
    words: isVocabulary(field) ? new Map() : undefined,
    hasLongNumbers: false,
    form: undefined,
    isPartial: false,
  }
}

/** The number of values that were seen at a place. */
export function countSeen(shape: Shape): number {
  let sum = 0
  for (const { count } of shape.kinds.values()) sum += count
  return sum
}

export function findKind(value: SentValue): Kind {
  if (value === null) return 'null'
  if (value instanceof SentNumber) return 'number'
  if (Array.isArray(value)) return 'array'
  // typeof of any other JSON value is one of the kinds
  return typeof value as Kind
}

/** The part of the limits that is left. */
type Room = { places: number; visits: number }

/** Adds the payload of one request. */
export function learn(shape: Shape, payload: SentValue, at: number): void {
  addValue(shape, payload, { at, depth: 0, room: { places: maxPlaces - countPlaces(shape), visits: maxVisits } })
}

type Place = { readonly at: number; readonly depth: number; readonly room: Room }

function addValue(shape: Shape, value: SentValue, { at, depth, room }: Place): void {
  addSeen(shape, findKind(value), { count: 1, first: at, last: at })
  if (typeof value === 'string') {
    if (shape.form !== 'text') shape.form = joinForms(shape.form, findForm(value))
    addWord(shape, value, room)
    return
  }
  shape.hasLongNumbers ||= findDigits(value) !== undefined
  if (typeof value !== 'object' || value === null || value instanceof SentNumber) return
  room.visits -= 1
  if (depth >= maxDepth || room.visits < 0) {
    shape.isPartial = true
    return
  }
  const below = { at, depth: depth + 1, room }
  if (Array.isArray(value)) addItems(shape, value, below)
  else addFields(shape, value, below)
}

function addItems(shape: Shape, items: readonly SentValue[], below: Place): void {
  if (items.length === 0) return
  const target = (shape.items ??= createShape())
  for (const item of items.slice(0, maxItems)) addValue(target, item, below)
}

function addFields(shape: Shape, value: SentObject, below: Place): void {
  const keys = Object.keys(value)
  if (keys.length > maxFields) return addLarge(shape, value, below)
  doubtMap(shape)
  shape.opened += 1
  for (const key of keys) {
    const target = shape.fields.get(key) ?? openKey(shape, key, below.room)
    // as: an own key
    if (target !== undefined) addValue(target, value[key] as SentValue, below)
  }
}

/** Adds an object with more keys than a shape may have: the known fields, then some of the other keys. */
function addLarge(shape: Shape, value: SentObject, below: Place): void {
  forgetRareKeys(shape)
  const keys = Object.keys(value)
  const known = keys.filter((key) => shape.fields.has(key))
  // an object without any known field shows nothing about the fields
  if (shape.isMap || known.length > 0) shape.opened += 1
  for (const key of [...known, ...keys.filter((each) => !shape.fields.has(each))].slice(0, maxFields)) {
    const target = shape.fields.get(key) ?? openOthers(shape, below.room)
    // as: an own key
    addValue(target, value[key] as SentValue, below)
  }
}

function addSeen(shape: Shape, kind: Kind, { count, first, last }: Seen): void {
  const known = shape.kinds.get(kind)
  if (known === undefined) shape.kinds.set(kind, { count, first, last })
  else {
    known.count += count
    known.first = Math.min(known.first, first)
    known.last = Math.max(known.last, last)
  }
}

/** The place of a new key; undefined if the shape has no room for it. */
function openKey(shape: Shape, key: string, room: Room): Shape | undefined {
  if (shape.isMap || !isFieldName(key)) return openOthers(shape, room)
  if (shape.fields.size >= maxFields) {
    forgetRareKeys(shape)
    return openOthers(shape, room)
  }
  if (room.places <= 0) {
    shape.isPartial = true
    return undefined
  }
  const made = createShape(key)
  room.places -= 1
  shape.fields.set(key, made)
  return made
}

/** The shape of all keys that have none of their own. Made if it is missing. */
function openOthers(shape: Shape, room: Room): Shape {
  if (shape.others === undefined) room.places -= 1
  return (shape.others ??= createShape())
}

function addWord(shape: Shape, word: string, room: Room): void {
  const { words } = shape
  if (words === undefined || word === '') return
  const known = words.get(word)
  if (known !== undefined) words.set(word, known + 1)
  else if (words.size < maxWords && room.places > 0 && isVocabularyWord(word)) {
    room.places -= 1
    words.set(word, 1)
  } else shape.words = undefined
}

function joinForms(one: Form | undefined, other: Form | undefined): Form | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return one === other ? one : 'text'
}

/** Adds the counts of another shape. */
export function merge(shape: Shape, other: Shape): void {
  mergeInto(shape, other, { places: maxPlaces - countPlaces(shape), visits: Infinity })
  foldMaps(shape)
}

function mergeInto(shape: Shape, other: Shape, room: Room): void {
  for (const [kind, seen] of other.kinds) addSeen(shape, kind, seen)
  if (other.isMap) forgetRareKeys(shape)
  else if (other.opened > 0) doubtMap(shape)
  // a map shows nothing about the fields, as in `addLarge`
  if (shape.isMap || !other.isMap) shape.opened += other.opened
  shape.form = joinForms(shape.form, other.form)
  shape.hasLongNumbers ||= other.hasLongNumbers
  shape.isPartial ||= other.isPartial
  mergeWords(shape, other.words, room)
  for (const [key, field] of other.fields) {
    const target = shape.fields.get(key) ?? openKey(shape, key, room)
    if (target !== undefined) mergeInto(target, field, room)
  }
  if (other.others !== undefined) mergeInto(openOthers(shape, room), other.others, room)
  if (other.items !== undefined) mergeInto((shape.items ??= createShape()), other.items, room)
}

function mergeWords(shape: Shape, added: Shape['words'], room: Room): void {
  const { words } = shape
  if (words === undefined) return
  for (const [word, count] of added ?? []) {
    if (!words.has(word)) room.places -= 1
    words.set(word, (words.get(word) ?? 0) + count)
  }
  if (added === undefined || words.size > maxWords || room.places < 0) shape.words = undefined
}

/** Moves the fields that few objects have into `others`. If no field is left, the place is a map. */
function forgetRareKeys(shape: Shape): void {
  const fewest = Math.max(fewestOfCommon, sharedOfMap * shape.opened)
  forgetKeys(shape, (field) => countSeen(field) < fewest)
}

function forgetKeys(shape: Shape, isForgotten: (field: Shape) => boolean): void {
  if (shape.isMap) return
  const others = (shape.others ??= createShape())
  for (const [key, field] of shape.fields) {
    if (!isForgotten(field)) continue
    mergeInto(others, field, { places: maxPlaces, visits: Infinity })
    shape.fields.delete(key)
  }
  shape.isMap = shape.fields.size === 0
}

/** One large object must not make a place a map for ever: anybody may have sent it before the first usual object. */
function doubtMap(shape: Shape): void {
  if (shape.opened < openedOfMap) shape.isMap = false
}

function foldMaps(shape: Shape): void {
  if (looksLikeMap(shape)) forgetKeys(shape, () => true)
  for (const field of shape.fields.values()) foldMaps(field)
  if (shape.others !== undefined) foldMaps(shape.others)
  if (shape.items !== undefined) foldMaps(shape.items)
}

/** See `fewestOfMap`. A value null counts as no kind. */
function looksLikeMap({ fields, opened }: Shape): boolean {
  if (fields.size < fewestOfMap || opened < openedOfMap) return false
  let shared = 0
  const found = new Set<Kind>()
  for (const field of fields.values()) {
    shared += countSeen(field)
    for (const kind of field.kinds.keys()) found.add(kind)
  }
  found.delete('null')
  return found.size <= 1 && shared < sharedOfMap * fields.size * opened
}

function countPlaces({ fields, others, items, words }: Shape): number {
  let sum = words?.size ?? 0
  for (const field of fields.values()) sum += 1 + countPlaces(field)
  return sum + (others === undefined ? 0 : 1 + countPlaces(others)) + (items === undefined ? 0 : 1 + countPlaces(items))
}
