// The contract suite of `hookloom/testing`: the built-in sources keep all promises, and a source that breaks one is found.
import { beforeEach, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { defineSource, type SourceDefinition, type SourceHost, type SourceParts } from '../../../../src/define.ts'
import { gmailSource } from '../../../../src/plugins/sources/gmail/gmail.ts'
import { writeConsent } from '../../../../src/plugins/sources/gmail/credentials.ts'
import { checkSource, type SourceTrial } from '../../../../src/testing.ts'
import { account, startGoogle } from '../../../e2e/fakes/google.ts'
import { makeFolder } from '../../../e2e/gateway.ts'
import { consent } from './gmail/stage.ts'

vi.setConfig({ testTimeout: 120_000 })

test('the source gmail keeps the promises of a source', async () => {
  const google = await startGoogle()
  const dir = makeFolder()
  await writeConsent(dir, consent)
  const usualFetch = globalThis.fetch
  const asked: string[] = []
  let mails = 0
  const broken = await checkSource(gmailSource, {
    options: { account, mode: 'poll', endpoints: google.endpoints },
    dir,
    add: () => google.mailbox.receive({ id: `m${(mails += 1)}` }),
    respond(request) {
      asked.push(request.url)
      return usualFetch(request)
    },
  })
  expect(broken).toEqual([])
  expect(asked.length).toBeGreaterThan(50)
})

/** The other side has items with rising numbers, and lists two a page, the oldest first. */
let newest = 0
let passes = 0
beforeEach(() => {
  newest = 7
  passes = 0
})

const Page = z.object({ ids: z.array(z.number()) })
const options = { server: 'https://pier.test', token: 'tk_0123456789' }
type Options = typeof options

const trial: SourceTrial = {
  options,
  renewed: { ...options, token: 'tk_9876543210' },
  add: () => void (newest += 1),
  respond({ url }: Request) {
    const after = Number(new URL(url).searchParams.get('after'))
    const ids = [after + 1, after + 2].filter((id) => id <= newest)
    return Response.json({ ids })
  },
}

async function readPage({ server, token }: Options, { fetch }: SourceHost, after: number, signal?: AbortSignal) {
  const answer = await fetch(`${server}/items?after=${after}`, {
    headers: { authorization: token },
    signal: signal ?? null,
  })
  if (!answer.ok) throw new Error(`The pier answers ${answer.status}.`)
  return Page.parse(await answer.json()).ids
}

const toItem = (id: number) => ({ key: `pier:${id}`, payload: { id } })

type Pass = (host: SourceHost, options: Options, signal: AbortSignal) => Promise<{ problem: string } | undefined | void>

const good: Pass = async (host, given, signal) => {
  for (let after = Number((await host.place()) ?? 0); ;) {
    const ids = await readPage(given, host, after, signal)
    if (ids.length === 0) return
    after = ids.at(-1) ?? after
    await host.store(ids.map(toItem), String(after))
  }
}

function check(pass: Pass, more: Partial<SourceDefinition<Options>> = {}): Promise<string[]> {
  const definition = defineSource({
    name: 'pier',
    about: 'The pier.',
    options: z.strictObject({ server: z.url(), token: z.string() }),
    account: ({ server }) => server,
    create: (given, host) => ({ pass: (signal) => pass(host, given, signal) }),
    ...more,
  })
  return checkSource(definition, trial)
}

test('a source that keeps all promises breaks none', async () => {
  expect(await check(good)).toEqual([])
})

test('a source that stays in its pass, pauses and shows its problems breaks no promise', async () => {
  const create: SourceDefinition<Options>['create'] = (given, host) => {
    let problem: string | undefined
    return {
      problems: () => (problem === undefined ? [] : [problem]),
      async pass(signal) {
        for (;;) {
          try {
            await good(host, given, signal)
            problem = undefined
          } catch (error) {
            signal.throwIfAborted()
            problem = String(error)
          }
          await host.pause(1_000, signal)
        }
      },
    }
  }
  expect(await check(good, { create })).toEqual([])
})

/** The same source, whose items have a file each. */
const withFiles =
  (readFiles: SourceParts['readFiles']): SourceDefinition<Options>['create'] =>
  (given, host) => ({
    pass: (signal) => {
      const store: SourceHost['store'] = (items, place) =>
        host.store(
          items.map((item) => ({ ...item, files: [{ name: 'a.txt', ref: item.key }] })),
          place,
        )
      return good({ ...host, store }, given, signal)
    },
    ...(readFiles && { readFiles }),
  })

test('a source that offers files must yield the contents of each', async () => {
  const create = withFiles(async function* (refs) {
    for (const ref of refs) yield Buffer.from(ref)
  })
  expect(await check(good, { create })).toEqual([])
  const broken = ['An item has files, and readFiles does not yield the contents of each.']
  expect(await check(good, { create: withFiles(undefined) })).toEqual(broken)
  const lacking = withFiles(async function* (refs) {
    for (const _ of refs) yield undefined
  })
  expect(await check(good, { create: lacking })).toEqual(broken)
})

/** The place of a source that keeps it in memory only. */
let remembered: number | undefined

test.each<[what: string, pass: Pass, broken: string, more?: Partial<SourceDefinition<Options>>]>([
  [
    'moves its place before the items are stored',
    async (host, given, signal) => {
      const after = Number((await host.place()) ?? 0)
      const ids = await readPage(given, host, after, signal)
      if (ids.length === 0) return
      await host.store([], String(ids.at(-1)))
      await host.store(ids.map(toItem), String(ids.at(-1)))
    },
    'Crash after call 1 of store',
  ],
  [
    'stores its items before the place, with another key each time',
    async (host, given, signal) => {
      const after = Number((await host.place()) ?? 0)
      const ids = await readPage(given, host, after, signal)
      if (ids.length === 0) return
      passes += 1
      const items = ids.map((id) => ({ key: `${passes}:${id}`, payload: { id } }))
      await host.store(items, String(after))
      await host.store([], String(ids.at(-1)))
    },
    'because the key of an item changes',
  ],
  [
    'names its items by their place in a page',
    async (host, given, signal) => {
      const after = Number((await host.place()) ?? 0)
      const ids = await readPage(given, host, after, signal)
      const items = ids.map((id, index) => ({ key: `pier:${index}`, payload: { id } }))
      if (ids.length > 0) await host.store(items, String(ids.at(-1)))
    },
    'A pass: 3 of 3 items are lost.',
  ],
  [
    'begins with the newest item at each start',
    memoryPass,
    'items are lost',
    {
      create(given, host) {
        remembered = undefined
        return { pass: (signal) => memoryPass(host, given, signal) }
      },
    },
  ],
  [
    'takes a failure for an empty page',
    async (host, given, signal) => {
      const after = Number((await host.place()) ?? 0)
      const ids = await readPage(given, host, after, signal).catch(() => [])
      signal.throwIfAborted()
      if (ids.length > 0) await host.store(ids.map(toItem), String(ids.at(-1)))
    },
    'Answer 500 to request 1: no pass fails and no problem is shown',
  ],
  [
    'skips what it cannot read',
    async (host, given, signal) => {
      const after = Number((await host.place()) ?? 0)
      try {
        const ids = await readPage(given, host, after, signal)
        if (ids.length > 0) await host.store(ids.map(toItem), String(ids.at(-1)))
      } catch {
        signal.throwIfAborted()
        await host.store([], String(after + 1))
        return { problem: 'An item could not be read.' }
      }
      return undefined
    },
    'to request 1, and then none: ',
  ],
  [
    'goes on after a store that fails',
    forgetfulPass,
    'A store that fails, and then none: ',
    {
      create(given, host) {
        passes = 0
        return { pass: (signal) => forgetfulPass(host, given, signal) }
      },
    },
  ],
  [
    'never reads its place again',
    async () => {},
    'After another gateway moved the place',
    {
      create(given, host) {
        let place: Promise<string | undefined> | undefined
        let after: number | undefined
        return {
          async pass(signal) {
            place ??= host.place()
            after ??= Number((await place) ?? 0)
            const ids = await readPage(given, host, after, signal)
            if (ids.length === 0) return
            await host.store(ids.map(toItem), String(ids.at(-1)))
            after = ids.at(-1)
          },
        }
      },
    },
  ],
  [
    'does not end when it is stopped',
    async (host, given) => {
      const answer = fetch(`${given.server}/items?after=${(await host.place()) ?? 0}`)
      const { ids } = Page.parse(await (await answer).json())
      if (ids.length > 0) await host.store(ids.map(toItem), String(ids.at(-1)))
    },
    'A stop during a request: the pass does not end at once.',
  ],
  [
    'logs its token',
    async (host, given, signal) => {
      host.log.info({ token: given.token }, 'the pier is asked')
      await good(host, given, signal)
    },
    'the problem or the log has a secret.',
  ],
  [
    'names its token in a problem',
    async (host, given, signal) => {
      try {
        await good(host, given, signal)
      } catch (error) {
        signal.throwIfAborted()
        return { problem: `${String(error)} The token is ${given.token}.` }
      }
      return undefined
    },
    'Answer 401 to request 1: the problem or the log has a secret.',
  ],
  [
    'puts its token into its place',
    async (host, given, signal) => {
      const [before = '0'] = ((await host.place()) ?? '0').split(' ')
      const ids = await readPage(given, host, Number(before), signal)
      if (ids.length > 0) await host.store(ids.map(toItem), `${ids.at(-1)} ${given.token}`)
    },
    'The place has a secret.',
  ],
  [
    'begins again with another token',
    good,
    'account returns another name for another credential',
    { account: ({ server, token }) => server + token.length + token.slice(3, 5) },
  ],
])('a source that %s is found', async (_, pass, broken, more) => {
  expect(await check(pass, more)).toContainEqual(expect.stringContaining(broken))
})

async function memoryPass(host: SourceHost, given: Options, signal: AbortSignal): Promise<void> {
  remembered ??= newest
  await host.place()
  const ids = await readPage(given, host, remembered, signal)
  if (ids.length === 0) return
  remembered = ids.at(-1) ?? remembered
  await host.store(ids.map(toItem), String(remembered))
}

async function forgetfulPass(host: SourceHost, given: Options, signal: AbortSignal): Promise<void> {
  const after = Math.max(passes, Number((await host.place()) ?? 0))
  const ids = await readPage(given, host, after, signal)
  if (ids.length === 0) return
  passes = ids.at(-1) ?? after
  await host.store(ids.map(toItem), String(passes))
}
