// The time window of a scheme must not refuse an attempt that the sender makes by its own rules, and must not let a captured request in again.
import { expect, test } from 'vitest'
import { toRepeats } from '../../../readme-senders.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { schemes } = builtInSenders

/** Seconds by which the clocks of sender and gateway may differ, in addition to the time between two attempts. */
const skew = 60

const timed = schemes.flatMap((scheme) => {
  const window = scheme.kind === 'jwt' ? scheme.maxAgeSeconds : 'toleranceSeconds' in scheme && scheme.toleranceSeconds
  return typeof window === 'number' ? [{ id: scheme.id, scheme, window, retries: scheme.retries }] : []
})

test('every scheme that signs a time names the page about how its sender repeats requests', () => {
  expect(timed.length).toBeGreaterThan(30)
  const unsaid = timed.filter(({ retries }) => retries?.docs.startsWith('https://') !== true)
  expect(unsaid.map(({ id }) => id)).toEqual([])
})

test('only a scheme with a time window says how its sender repeats requests', () => {
  const known = new Set(timed.map(({ id }) => id))
  expect(schemes.filter(({ id, retries }) => retries !== undefined && !known.has(id)).map(({ id }) => id)).toEqual([])
})

test('the window covers every attempt that may have the signed time of the first attempt', () => {
  const narrow = timed.flatMap(({ id, window, retries }) =>
    retries?.time === 'first' && window < retries.seconds + skew ? [[id, window, retries.seconds]] : [],
  )
  expect(narrow).toEqual([])
})

test('Linear repeats the same bytes after one minute, one hour and six hours, and its window covers them', () => {
  expect(timed.find(({ id }) => id === 'linear')?.window).toBeGreaterThanOrEqual(60 + 3_600 + 6 * 3_600)
})

test('the window is a day if the documentation does not say how long the sender repeats a request', () => {
  const unsaid = timed.filter(({ retries }) => retries?.time === 'unsaid')
  expect(unsaid.filter(({ window }) => window < 86_400).map(({ id }) => id)).toEqual([])
})

test('no window is narrower than the one that the sender itself uses or recommends', () => {
  const narrow = timed.flatMap(({ id, window, retries }) =>
    retries?.time === 'limited' && window < retries.seconds ? [[id, window, retries.seconds]] : [],
  )
  expect(narrow).toEqual([])
})

test('a scheme with a window of more than five minutes recognises a captured request by something signed, unless its sender uses or recommends such a window', () => {
  const open = timed.filter(
    ({ scheme, window, retries }) =>
      window > 300 && retries?.time !== 'limited' && !/by signed/.test(toRepeats(scheme)),
  )
  expect(open.map(({ id }) => id)).toEqual([])
})
