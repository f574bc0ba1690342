// What a relay keeps on disk.
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { deriveKeys, generateHomeKey } from '../../../../../src/plugins/sources/relay/keys.ts'
import { openRelayStore, relayLimits } from '../../../../../src/plugins/sources/relay/relay-store.ts'
import { makeFolder } from '../../../../e2e/gateway.ts'

const newKeys = () => deriveKeys(generateHomeKey()).known
const everything = 1024 ** 3

async function openStore({ dir = makeFolder(), limits = {}, now = { ms: Date.now() } } = {}) {
  const open = () => openRelayStore({ dir, limits: { ...relayLimits, ...limits }, clock: () => now.ms })
  return { dir, now, open, store: await open() }
}

async function openHome(options: Parameters<typeof openStore>[0] = {}) {
  const opened = await openStore(options)
  const keys = newKeys()
  const home = await opened.store.open(keys)
  if (home === undefined) throw new Error('There is no room for the home.')
  return { ...opened, keys, home, folder: join(opened.dir, keys.address) }
}

const numbersOf = (found: readonly { readonly number: number }[]) => found.map(({ number }) => number)

describe('the envelopes of a home', () => {
  test('have rising numbers, and are there until the home has taken them', async () => {
    const { home, open, keys } = await openHome()
    for (const text of ['a', 'b', 'c']) expect(await home.append(Buffer.from(text))).toBe(true)
    const found = await home.list(1, everything)
    expect(found.map(({ number, envelope }) => [number, envelope.toString()])).toEqual([
      [2, 'b'],
      [3, 'c'],
    ])
    await home.take(home.epoch(), 2)
    expect(numbersOf(await home.list(0, everything))).toEqual([3])
    const again = (await open()).find(keys.address)
    expect(numbersOf((await again?.list(0, everything)) ?? [])).toEqual([3])
  })

  test('that are appended at once are listed in the order of their numbers, without a gap', async () => {
    const { home } = await openHome()
    await Promise.all(Array.from({ length: 50 }, (_, at) => home.append(Buffer.alloc(1_000, at))))
    expect(numbersOf(await home.list(0, everything))).toEqual(Array.from({ length: 50 }, (_, at) => at + 1))
  })

  test('have higher numbers after a restart than all that were taken', async () => {
    const { home, open, keys } = await openHome()
    for (const text of ['a', 'b']) await home.append(Buffer.from(text))
    await home.take(home.epoch(), 2)
    const again = (await open()).find(keys.address)
    expect(again?.epoch()).toBe(home.epoch())
    await again?.append(Buffer.from('c'))
    expect(numbersOf((await again?.list(0, everything)) ?? [])).toEqual([3])
  })

  test('are not removed by what was taken in another epoch', async () => {
    const { home } = await openHome()
    await home.append(Buffer.from('a'))
    await home.take('another', 1)
    expect(numbersOf(await home.list(0, everything))).toEqual([1])
  })

  test('begin a new epoch if the home has taken a number that was never given', async () => {
    const { home } = await openHome()
    const before = home.epoch()
    await home.append(Buffer.from('a'))
    await home.take(before, 9)
    expect(home.epoch()).not.toBe(before)
    expect(numbersOf(await home.list(0, everything))).toEqual([1])
  })

  test('are handed over in batches, at least one at a time', async () => {
    const { home } = await openHome()
    for (let at = 0; at < 3; at++) await home.append(Buffer.alloc(100))
    expect(numbersOf(await home.list(0, 250))).toEqual([1, 2])
    expect(numbersOf(await home.list(2, 10))).toEqual([3])
  })

  test('are refused beyond the number and the bytes that a home may have', async () => {
    const few = await openHome({ limits: { envelopes: 2 } })
    const answers = await Promise.all([1, 2, 3].map(() => few.home.append(Buffer.from('a'))))
    expect(answers.filter(Boolean)).toHaveLength(2)
    const small = await openHome({ limits: { bytes: 100 } })
    expect(await small.home.append(Buffer.alloc(60))).toBe(true)
    expect(await small.home.append(Buffer.alloc(60))).toBe(false)
    await small.home.take(small.home.epoch(), 1)
    expect(await small.home.append(Buffer.alloc(60))).toBe(true)
  })

  test('are removed after seven days', async () => {
    const { home, store, now, folder, open, keys } = await openHome()
    await home.append(Buffer.from('a'))
    const [name = ''] = readdirSync(folder).filter((each) => each.endsWith('.sealed'))
    utimesSync(join(folder, name), now.ms / 1_000, now.ms / 1_000)
    now.ms += 6 * 86_400_000
    await home.append(Buffer.from('b'))
    await store.removeOld()
    expect(numbersOf(await home.list(0, everything))).toEqual([1, 2])
    now.ms += 2 * 86_400_000
    await store.removeOld()
    expect(numbersOf(await home.list(0, everything))).toEqual([2])
    expect((await open()).find(keys.address)).toBeDefined()
  })
})

describe('a folder after a kill', () => {
  test('loses temporary files, and a home whose creation did not end', async () => {
    const { dir, folder, home, open, keys } = await openHome()
    await home.append(Buffer.from('a'))
    writeFileSync(join(folder, 'new-7.tmp'), 'half')
    const unfinished = join(dir, newKeys().address)
    mkdirSync(unfinished)
    writeFileSync(join(unfinished, 'state.tmp'), '{')
    const again = await open()
    expect(readdirSync(dir)).toEqual([keys.address])
    expect(readdirSync(folder).toSorted()).toEqual(['0000000000000001.sealed', 'state'])
    expect(again.find(keys.address)?.epoch()).toBe(home.epoch())
  })

  test('with a damaged state is named, and nothing of it is removed', async () => {
    const { home, open, folder } = await openHome()
    await home.append(Buffer.from('a'))
    writeFileSync(join(folder, 'state'), '{')
    await expect(open()).rejects.toThrow(`${join(folder, 'state')} is damaged.`)
    expect(readdirSync(folder)).toHaveLength(2)
  })

  test('has the number in its state before the envelopes go', async () => {
    const { home, folder } = await openHome()
    await home.append(Buffer.from('a'))
    await home.take(home.epoch(), 1)
    expect(JSON.parse(readFileSync(join(folder, 'state'), 'utf8'))).toMatchObject({ through: 1 })
  })
})

describe('the homes of a relay', () => {
  test('are at most as many as the limit, and a known one stays known', async () => {
    const { store } = await openStore({ limits: { homes: 1 } })
    const [one, other] = [newKeys(), newKeys()]
    expect(await store.open(one)).toBeDefined()
    expect(await store.open(other)).toBe(undefined)
    expect((await store.open(one))?.keys.address).toBe(one.address)
  })

  test('are forgotten thirty days after they connected last', async () => {
    const { store, now, keys, home } = await openHome()
    now.ms += 20 * 86_400_000
    await home.noteSeen()
    now.ms += 20 * 86_400_000
    await store.removeOld()
    expect(store.find(keys.address)).toBeDefined()
    now.ms += 11 * 86_400_000
    await store.removeOld()
    expect(store.find(keys.address)).toBe(undefined)
  })
})
