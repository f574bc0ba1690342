// A store and a gateway for the check of a source: passes are run one by one, pauses end at once, and the process may crash.
import { maxFileBytes } from '../model/source-files.ts'
import type { SourceDefinition, SourceHost, SourceParts } from '../model/source.ts'
import { createLimitedFetch } from '../plugins/sources/shared/fetch.ts'
import { type Fault, replaceFetch, waitFor } from './faults.ts'

/** A source with another side that gets new items. */
export type SourceTrial = {
  /** The options of the source, as in its section without `kind`. */
  readonly options: object
  /** The same options with another credential. Without it, there is no credential that could be shown. */
  readonly renewed?: object
  /** The config directory, of a source that reads files there. */
  readonly dir?: string
  /** Makes the other side have one more item. Let it answer with less than three items at a time, if it has pages. */
  add(): void | Promise<void>
  /** The answers of the other side. No request leaves the process. */
  respond(request: Request): Response | Promise<Response>
}

/** What the store has. `refs`: those of the files of its items. `faults`: what a source gave to it that it does not take. */
export type World = {
  place: string | undefined
  readonly items: Map<string, string>
  readonly refs: string[]
  readonly faults: string[]
}

export function createWorld(): World {
  return { place: undefined, items: new Map(), refs: [], faults: [] }
}

type Drive = {
  /** How many passes, or pauses in a pass, there are at most. */
  readonly most: number
  readonly isDone?: () => boolean
  /** The answer to a request, and to all after it, of this drive. */
  readonly fault?: Fault
  readonly at?: number
  readonly failsToStore?: boolean
  readonly crash?: { readonly at: number; readonly crash: 'before' | 'after' }
}

/** A source in a process. */
export type Instance = {
  /** Runs passes until the items are stored, or the process has crashed. */
  drive(drive: Drive): Promise<void>
  /** How many of the files with these refs it has, without a pass; undefined if it does not yield one entry for each. */
  readFiles(refs: readonly string[]): Promise<number | undefined>
  /** False if a pass does not end in time. */
  stop(ms: number): Promise<boolean>
  /** The process is gone: what it still does has no effect. */
  kill(): void
  /** The next call of `store` waits until it is released. `reached`: it was called, or the source has nothing to store. */
  holdStore(): { readonly reached: Promise<void>; release(): void }
  /** The failures of passes, and the problems that were shown, since the last drive began. */
  failures(): readonly string[]
  logged(): readonly string[]
  /** The calls of `store` and the requests since the last drive began. */
  counts(): { readonly stores: number; readonly requests: number }
}

const startedAt = 1_767_323_045_000
const patienceMs = 20_000
const never = new Promise<never>(() => {})

export function openSource<Options>(
  definition: SourceDefinition<Options>,
  options: Options,
  { world, trial }: { readonly world: World; readonly trial: SourceTrial },
): Instance {
  const stopping = new AbortController()
  const { signal } = stopping
  const failures: string[] = []
  const logged: string[] = []
  const waiting: (() => void)[] = []
  let now = startedAt
  let drive: Drive = { most: 0 }
  let left = 0
  let stores = 0
  let requests = 0
  let known: string | undefined
  const death = new AbortController()
  const isDead = () => death.signal.aborted
  let onIdle = () => {}
  let hold: { readonly reach: () => void; readonly released: Promise<void> } | undefined
  let running: Promise<void> | undefined
  let parts: SourceParts | undefined

  const isIdle = () => left <= 0 || drive.isDone?.() === true

  async function fetchOfTrial(input: Request | URL | string, init?: RequestInit): Promise<Response> {
    const request = new Request(input, init)
    if (isDead()) return never
    requests += 1
    const { fault, at = 1 } = drive
    return fault !== undefined && requests >= at ? await fault(request, () => {}) : await trial.respond(request)
  }

  const log = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`)
  const host: SourceHost = {
    signal,
    dir: trial.dir ?? '/',
    async place() {
      if (isDead()) return never
      known = world.place
      return known
    },
    async store(items, place) {
      if (isDead()) return never
      stores += 1
      const { crash, failsToStore } = drive
      if (hold !== undefined) {
        const { reach, released } = hold
        hold = undefined
        reach()
        await released
      }
      if (failsToStore === true) throw new Error('The disk is full.')
      const isLast = crash?.at === stores
      if (isLast && crash?.crash === 'before') return die()
      if (world.place !== known) throw new Error('Another process moved the place in the source.')
      world.faults.push(...findFaults(items, place))
      for (const { files = [] } of items) world.refs.push(...files.map(({ ref }) => ref))
      for (const { key, payload } of items) if (!world.items.has(key)) world.items.set(key, JSON.stringify(payload))
      world.place = place
      known = place
      if (isLast) return die()
    },
    async receive({ id, method, url }) {
      if (isDead()) return never
      if (!world.items.has(id)) world.items.set(id, `${method} ${url}`)
      return { status: 200, headers: {}, body: Buffer.from('{"ok":true}') }
    },
    fetch: createLimitedFetch(signal),
    async pause(ms, stopped) {
      stopped.throwIfAborted()
      left -= 1
      now += ms
      if (isIdle()) {
        const ended = new Promise<void>((resolve) => stopped.addEventListener('abort', () => resolve()))
        const released = new Promise<void>((resolve) => waiting.push(resolve))
        onIdle()
        await Promise.race([ended, released])
      } else await new Promise((resolve) => setImmediate(resolve))
      stopped.throwIfAborted()
    },
    verifier: () => {
      throw new Error('No request comes in while the source is checked.')
    },
    gate: { clientOf: () => '', readLockSeconds: () => undefined, fail() {} },
    log: { debug: log, info: log, warn: log, error: log },
    clock: () => now,
  }

  function die(): Promise<never> {
    death.abort()
    onIdle()
    return never
  }

  async function runPass(): Promise<void> {
    try {
      parts ??= definition.create(options, host)
      const result = await parts.pass(signal)
      if (typeof result === 'object') failures.push(result.problem)
    } catch (thrown) {
      if (!signal.aborted) failures.push(thrown instanceof Error ? thrown.message : String(thrown))
    }
  }

  async function runPasses(): Promise<void> {
    const idle = new Promise<void>((resolve) => (onIdle = resolve))
    for (const release of waiting.splice(0)) release()
    while (!isIdle() && !isDead() && !signal.aborted) {
      running ??= runPass().finally(() => (running = undefined))
      const pass = running
      const ended = await waitFor(
        Promise.race([pass.then(() => 'ended' as const), idle.then(() => 'idle' as const)]),
        patienceMs,
      )
      if (ended !== 'ended') break
      left -= 1
      now += parts?.everyMs ?? 60_000
    }
    if (!isDead()) failures.push(...(parts?.problems?.() ?? []))
  }

  return {
    async drive(next) {
      drive = next
      left = next.most
      stores = 0
      requests = 0
      failures.length = 0
      logged.length = 0
      await replaceFetch(fetchOfTrial, runPasses)
    },
    async readFiles(refs) {
      const read = async (): Promise<number | undefined> => {
        const { readFiles } = definition.create(options, host)
        const entries: (Uint8Array | undefined)[] = []
        for await (const file of readFiles?.(refs, { maxBytes: maxFileBytes, signal }) ?? []) entries.push(file)
        return entries.length === refs.length ? entries.filter((file) => file !== undefined).length : undefined
      }
      return await replaceFetch(fetchOfTrial, () => read().catch(() => undefined))
    },
    async stop(ms) {
      stopping.abort()
      const isEnded = await replaceFetch(fetchOfTrial, () =>
        waitFor(
          (running ?? Promise.resolve()).then(() => true),
          ms,
        ),
      )
      return isEnded === true
    },
    kill() {
      death.abort()
      stopping.abort()
    },
    holdStore() {
      let release = () => {}
      const released = new Promise<void>((resolve) => (release = resolve))
      const reached = new Promise<void>((reach) => (hold = { reach, released }))
      return { reached: waitFor(reached, patienceMs).then(() => undefined), release: () => release() }
    },
    failures: () => failures,
    logged: () => logged,
    counts: () => ({ stores, requests }),
  }
}

function findFaults(items: readonly { readonly key: string; readonly payload: object }[], place: unknown): string[] {
  const isRight = items.every(
    ({ key, payload }) => typeof key === 'string' && /^.{1,256}$/s.test(key) && typeof payload === 'object',
  )
  return [
    ...(isRight ? [] : ['An item has no key of 1 to 256 characters, or its payload is no object.']),
    ...(typeof place === 'string' ? [] : ['The place is no text.']),
  ]
}
