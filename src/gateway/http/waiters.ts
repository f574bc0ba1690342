// Requests that wait for a run or a delivery. Those that wait for a run ask the store together: one read for all, however many wait, because another
// gateway may end a run.
import type { Log } from '../../base/log.ts'
import { toErrorName } from '../../base/exceptions.ts'
import type { Generation } from '../generation/generation.ts'
import type { Progress, ProgressReader } from '../../store/progress.ts'
import type { Access } from './access.ts'

/** The delay is too short for a person to notice. With SQLite, a read for two hundred ids takes half a millisecond of processor time. */
const readEveryMs = 250

/** The response of a request. Its event `close` comes when it was sent, or when the client has gone. */
type Closing = {
  readonly closed: boolean
  once(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

export type Waiters = {
  /**
   * Takes one of the `maxWaiting` places for a request of this token. Undefined if none is free, if the token has its share, or if the gateway
   * stops. The place is free again after `leave`, and when the client has gone.
   */
  enter(response: Closing, tokenId: string): Waiter | undefined
  /** Ends all waits, and lets nobody wait from now on. */
  stop(): void
}

export type Waiter = {
  /**
   * Resolves with `reached` when `isReached` is true for the progress of the id (undefined: the store no longer has the id), with `late` after
   * `ms`, and with `over` if the place was given up, the client has gone or the gateway stops. Never rejects: an outage of the store only
   * prolongs the wait.
   */
  waitUntil(id: string, isReached: (progress: Progress | undefined) => boolean, ms: number): Promise<WaitEnd>
  /** Resolves with `late` after `ms`, and with `over` as `waitUntil` does. */
  pause(ms: number): Promise<WaitEnd>
  leave(): void
}
type WaitEnd = 'reached' | 'late' | 'over'

type Waiting = {
  readonly id: string
  readonly isReached: (progress: Progress | undefined) => boolean
  readonly end: (how: WaitEnd) => void
}

type WaitersParts = {
  readonly store: ProgressReader
  readonly access: Pick<Access, 'findKeyScope' | 'listRunUsers'>
  readonly generation: () => Generation
  readonly log: Pick<Log, 'warn'>
}

/** While several tokens may wait, one of them gets half of the places. The hook tokens count as one. */
export function createWaiters({ store, access, generation, log }: WaitersParts): Waiters {
  /** The places that are taken, each with its owner: the id of a token, or undefined for the hook tokens. */
  const places = new Map<Waiter, string | undefined>()
  const waiting = new Set<Waiting>()
  let timer: NodeJS.Timeout | undefined
  let isStopping = false
  let isFailing = false

  async function readProgress(): Promise<void> {
    // this read gives no result for a wait that begins during it
    const asked = [...waiting]
    const found = await store.progress([...new Set(asked.map(({ id }) => id))]).catch(noteFailure)
    if (found !== undefined) {
      isFailing = false
      const byId = new Map(found.map((progress) => [progress.id, progress]))
      for (const { id, isReached, end } of asked) if (isReached(byId.get(id))) end('reached')
    }
    timer = undefined
    readLater()
  }

  function noteFailure(thrown: unknown): undefined {
    if (!isFailing)
      log.warn({ error: toErrorName(thrown) }, 'The store cannot be read, so requests that wait for a run wait longer.')
    isFailing = true
  }

  function readLater(): void {
    if (timer === undefined && waiting.size > 0) timer = setTimeout(() => void readProgress(), readEveryMs).unref()
  }

  function hasRoom(owner: string | undefined): boolean {
    const live = generation()
    const { maxWaiting } = live.config.hooks
    if (places.size >= maxWaiting) return false
    const owned = [...places.values()].filter((other) => other === owner).length
    return owned < Math.ceil(maxWaiting / 2) || access.listRunUsers(live).every((other) => other === owner)
  }

  function enter(response: Closing, tokenId: string): Waiter | undefined {
    const owner = access.findKeyScope(tokenId, generation())
    if (isStopping || response.closed || !hasRoom(owner)) return undefined
    let endCurrent: ((how: WaitEnd) => void) | undefined
    /** Resolves when `end` is called, which `start` gets, when the place is given up, and after `ms`. A second end has no effect. */
    const wait = (ms: number, start: (end: (how: WaitEnd) => void) => () => void) =>
      new Promise<WaitEnd>((resolve) => {
        if (!places.has(place)) return resolve('over')
        let isOver = false
        const end = (how: WaitEnd) => {
          // a read that began earlier may end a wait again, after the place has begun its next one
          if (isOver) return
          isOver = true
          clearTimeout(late)
          endCurrent = undefined
          release()
          resolve(how)
        }
        const late = setTimeout(() => end('late'), ms)
        endCurrent = end
        const release = start(end)
      })
    const place: Waiter = {
      waitUntil: (id, isReached, ms) =>
        wait(ms, (end) => {
          const entry = { id, isReached, end }
          waiting.add(entry)
          readLater()
          return () => waiting.delete(entry)
        }),
      pause: (ms) => wait(ms, () => () => {}),
      leave() {
        places.delete(place)
        response.off('close', place.leave)
        endCurrent?.('over')
      },
    }
    response.once('close', place.leave)
    places.set(place, owner)
    return place
  }

  return {
    enter,
    stop() {
      isStopping = true
      for (const place of places.keys()) place.leave()
      clearTimeout(timer)
    },
  }
}

/** The maximum number of seconds that a request waits: proxies cut one that is silent for a minute. */
const maxSeconds = 55
/** No client needs a longer header, and an attacker could make a longer one that takes time to parse. */
const maxPreferChars = 1_000

/** What a request asks for with `Prefer` (RFC 7240). `seconds`: at most 55. `showsRuns`: the answer has the runs too. */
export type PreferredWait = { readonly seconds: number; readonly showsRuns: boolean }

/**
 * The values of `Prefer: wait=<s>` and `return=representation`; undefined without a valid `wait`. A preference is a wish, so an invalid one or a
 * second one is ignored.
 */
export function readPreferredWait(prefer: string | undefined): PreferredWait | undefined {
  if (prefer === undefined || prefer.length > maxPreferChars) return undefined
  const items = prefer.match(/(?:"(?:[^"\\]|\\.?)*(?:"|$)|[^",])+/g) ?? []
  const find = (name: RegExp) => items.find((item) => name.test(item)) ?? ''
  const wait = find(/^[ \t]*wait[ \t]*(?:[=;]|$)/i)
  const [, quoted, plain] = /^[ \t]*wait[ \t]*=[ \t]*(?:"(\d+)"|(\d+))[ \t]*(?:;|$)/i.exec(wait) ?? []
  const seconds = quoted ?? plain
  if (seconds === undefined) return undefined
  const form = find(/^[ \t]*return[ \t]*(?:[=;]|$)/i)
  const showsRuns = /^[ \t]*return[ \t]*=[ \t]*(?:"representation"|representation)[ \t]*(?:;|$)/i.test(form)
  return { seconds: Math.min(Number(seconds), maxSeconds), showsRuns }
}
