// The form in which a shape is stored: its names are short, and absent facts are left out.
import type { Form } from './names.ts'
import { kinds, type Shape } from './shape.ts'

/**
 * `k`: the kinds, each as [index in `kinds`, count, first, last]. The other keys are short names for the other facts of a `Shape`. The key of an
 * absent fact is left out.
 */
type EncodedShape = {
  k: [number, number, number, number][]
  o?: number
  f?: [string, EncodedShape][]
  r?: EncodedShape
  i?: EncodedShape
  w?: [string, number][]
  t?: Form
  p?: 1
  d?: 1
  m?: 1
}

export function encodeShape(shape: Shape): EncodedShape {
  const { opened, fields, others, items, words, form, isPartial, isMap, hasLongNumbers } = shape
  return {
    k: [...shape.kinds].map(([kind, { count, first, last }]) => [kinds.indexOf(kind), count, first, last]),
    ...(opened > 0 && { o: opened }),
    ...(fields.size > 0 && { f: [...fields].map(([key, field]): [string, EncodedShape] => [key, encodeShape(field)]) }),
    ...(others && { r: encodeShape(others) }),
    ...(items && { i: encodeShape(items) }),
    ...(words && { w: [...words] }),
    ...(form && { t: form }),
    ...(isPartial && { p: 1 as const }),
    ...(isMap && { m: 1 as const }),
    ...(hasLongNumbers && { d: 1 as const }),
  }
}

export function decodeShape({ k, o = 0, f = [], r, i, w, t, p, m, d }: EncodedShape): Shape {
  return {
    kinds: new Map(k.map(([kind, count, first, last]) => [kinds[kind] ?? 'null', { count, first, last }])),
    opened: o,
    fields: new Map(f.map(([key, field]) => [key, decodeShape(field)])),
    others: r && decodeShape(r),
    items: i && decodeShape(i),
    words: w && new Map(w),
    hasLongNumbers: d === 1,
    form: t,
    isPartial: p === 1,
    isMap: m === 1,
  }
}
