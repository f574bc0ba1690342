// What several gateways on a store know together: lockouts, and secrets that senders handed over. Each gateway reads both once a second.
import type { Log } from '../model/log.ts'
import { Problem } from '../model/problem.ts'
import { toErrorName } from '../base/exceptions.ts'
import type { Generation } from '../pipeline/generation.ts'
import type { Clock, Store } from '../store/store.ts'
import { armedForMs, type HandedSecrets, addSecret } from './handed.ts'
import { lockRule, type Throttle } from './throttle.ts'

const readEveryMs = 1_000
/** Failures within this time are one write. */
const writeAfterMs = 250
/** The most clients of a write. Those beyond it are counted by this gateway alone. */
const mostClients = 1_000

type Parts<Calls extends keyof Store> = { readonly store: Pick<Store, Calls>; readonly log: Log }

type Stoppable = { stop(): Promise<void> }

/** Makes of what a gateway knows what all gateways on its store know. */
type Sharing = Stoppable & {
  throttle(scope: string, own: Throttle): Throttle
  handed(own: HandedSecrets): HandedSecrets
}

/** For a gateway that has its store for itself. */
export const notShared: Sharing = { throttle: (_, own) => own, handed: (own) => own, stop: async () => {} }

export function createSharing(parts: { store: Store; clock: Clock; log: Log; generation: () => Generation }): Sharing {
  const { store, clock, log, generation } = parts
  const opened: Stoppable[] = []
  const keep = <Kind extends Stoppable>(part: Kind): Kind => {
    opened.push(part)
    return part
  }
  const names = () =>
    generation().mappings.flatMap(({ identity, verifier }) => (verifier?.handsOver === true ? [identity.handedAs] : []))
  return {
    throttle: (scope, own) => keep(shareThrottle(own, { store, log, scope })),
    handed: (own) => keep(shareHandedSecrets(own, { store, clock, names, log })),
    stop: async () => void (await Promise.all(opened.map((part) => part.stop()))),
  }
}

/** Calls `read` once a second, one call at a time. What fails is logged for debugging: the store says itself that it is away. */
function startPolling(read: () => Promise<void>, log: Log): Stoppable {
  let running: Promise<void> | undefined
  const timer = setInterval(() => {
    running ??= read()
      .catch((thrown: unknown) => log.debug({ thrown: toErrorName(thrown) }, 'what gateways share could not be read'))
      .finally(() => (running = undefined))
  }, readEveryMs).unref()
  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}

/** Locks out here, too, who failed too often at all gateways together. `scope` names the throttle. */
function shareThrottle(
  own: Throttle,
  { store, log, scope }: Parts<'noteFailures' | 'lockouts'> & { readonly scope: string },
): Throttle & Stoppable {
  let locked: ReadonlyMap<string, number> = new Map()
  let failures = new Map<string, number>()
  let writing: NodeJS.Timeout | undefined
  const reading = startPolling(async () => {
    const found = await store.lockouts(scope)
    const now = performance.now()
    locked = new Map(found.map(({ client, forMs }) => [client, now + forMs]))
  }, log)

  async function write(): Promise<void> {
    writing = undefined
    const clients = [...failures].map(([client, count]) => ({ client, count }))
    failures = new Map()
    // a store that is away loses a count, not the request; this gateway counts too
    await store.noteFailures({ scope, clients, ...lockRule }).catch(() => undefined)
  }

  return {
    lockedFor(client) {
      const until = locked.get(client)
      const shared = until === undefined ? 0 : Math.ceil((until - performance.now()) / 1_000)
      const mine = own.lockedFor(client)
      return shared > 0 ? Math.max(shared, mine ?? 0) : mine
    },
    fail(client) {
      own.fail(client)
      if (failures.size >= mostClients && !failures.has(client)) return
      failures.set(client, (failures.get(client) ?? 0) + 1)
      writing ??= setTimeout(() => void write(), writeAfterMs).unref()
    },
    get size() {
      return own.size
    },
    async stop() {
      clearTimeout(writing)
      await reading.stop()
    },
  }
}

type SharedSecrets = {
  readonly text: string | undefined
  readonly secrets: readonly string[]
  readonly armedUntil: number
}

/**
 * Secrets in the store, under the name of their mapping, with the window in which one more is accepted. `own`: in the file of this gateway,
 * where commands on its machine read them. `names`: of the mappings whose senders hand over a secret.
 */
function shareHandedSecrets(
  own: HandedSecrets,
  parts: Parts<'cursor' | 'appendAll'> & { readonly clock: Clock; readonly names: () => readonly string[] },
): HandedSecrets & Stoppable {
  const { store, clock, names, log } = parts
  const known = new Map<string, SharedSecrets>()
  const reading = startPolling(async () => {
    for (const name of names()) await read(name)
  }, log)

  async function read(id: string): Promise<SharedSecrets> {
    const text = await store.cursor(toCursorName(id))
    const before = known.get(id)
    if (before !== undefined && before.text === text) return before
    // as: only this file writes it
    const { secrets, armedUntil } = JSON.parse(text ?? '{"secrets":[],"armedUntil":0}') as Omit<SharedSecrets, 'text'>
    const found = { text, secrets, armedUntil }
    known.set(id, found)
    return found
  }

  /** Writes what `change` makes of the newest state, and again if another gateway wrote meanwhile. */
  async function update(id: string, change: (now: SharedSecrets) => Omit<SharedSecrets, 'text'>): Promise<void> {
    for (;;) {
      const before = await read(id)
      const to = JSON.stringify(change(before))
      if ((await store.appendAll([], { name: toCursorName(id), from: before.text, to })) !== 'moved') break
    }
    await read(id)
  }

  return {
    of(id) {
      const shared = known.get(id)?.secrets ?? []
      return shared.length > 0 ? shared : own.of(id)
    },
    isArmed: (id) => clock() < (known.get(id)?.armedUntil ?? 0),
    async arm(id) {
      const armedUntil = clock() + armedForMs
      await update(id, ({ secrets }) => ({ secrets, armedUntil }))
      return armedUntil
    },
    async keep(id, secret) {
      await update(id, ({ secrets, armedUntil }) => {
        if (clock() >= armedUntil) throw new Problem('unauthorized', 'Another handshake was accepted first.')
        return { secrets: addSecret(secret, secrets), armedUntil: 0 }
      })
      await own.keep(id, secret)
    },
    stop: reading.stop,
  }
}

function toCursorName(handedAs: string): string {
  return `handed/${handedAs}`
}
