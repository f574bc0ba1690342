// State that the gateways on one store share: lockouts, and secrets from handshakes. Each gateway reads both once a second.
import type { Log } from '../../base/log.ts'
import { Problem } from '../../core/model/problem.ts'
import { toErrorName } from '../../base/exceptions.ts'
import type { Generation } from '../generation/generation.ts'
import { updateCursor } from '../../store/cursors.ts'
import type { Clock, Store } from '../../store/store.ts'
import { armedForMs, type HandshakeSecrets, addSecret, type SecretFile } from './handshake-secrets.ts'
import { lockRule, type Throttle } from './throttle.ts'

const readEveryMs = 1_000
/** Failures within this time are written together. */
const writeAfterMs = 250
/** The maximum number of clients in one write. Those beyond it are counted by this gateway alone. */
const maxClients = 1_000

type Parts<Calls extends keyof Store> = { readonly store: Pick<Store, Calls>; readonly log: Log }

type Stoppable = { stop(): Promise<void> }

/** Replaces state of one gateway by state that all gateways on its store share. */
type Sharing = Stoppable & {
  throttle(scope: string, own: Throttle): Throttle
  handed(own: SecretFile): HandshakeSecrets
}

/** The sharing of the only gateway on its store: nothing is shared. */
export const noSharing: Sharing = { throttle: (_, own) => own, handed: (own) => own, stop: async () => {} }

export function createSharing(parts: { store: Store; clock: Clock; log: Log; generation: () => Generation }): Sharing {
  const { store, clock, log, generation } = parts
  const opened: Stoppable[] = []
  const register = <Kind extends Stoppable>(part: Kind): Kind => {
    opened.push(part)
    return part
  }
  const names = () =>
    generation().mappings.flatMap(({ identity, verifier }) =>
      verifier?.handsOver === true ? [identity.secretsName] : [],
    )
  return {
    throttle: (scope, own) => register(shareThrottle(own, { store, log, scope })),
    handed: (own) => register(shareHandshakeSecrets(own, { store, clock, names, log })),
    stop: async () => void (await Promise.all(opened.map((part) => part.stop()))),
  }
}

/** Calls `read` once a second, one call at a time. A failure is logged only at debug level: the store itself reports that it is unavailable. */
export function startPolling(read: () => Promise<void>, log: Log): Stoppable {
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

type SharedCursors<State> = {
  /** The newest state that was read. */
  known(id: string): State | undefined
  read(id: string): Promise<State>
  /** Applies `change` to the newest state and writes it. Tries again if another gateway wrote in between. */
  update(id: string, change: (now: State) => State): Promise<void>
}

/** State in cursors of the store, each with an id. `parse` has no side effects; it gets undefined if the store has no such cursor. */
export function createSharedCursors<State>({
  store,
  toName,
  parse,
}: {
  readonly store: Pick<Store, 'cursor' | 'appendAll'>
  readonly toName: (id: string) => string
  readonly parse: (text: string | undefined) => State
}): SharedCursors<State> {
  type Found = { readonly number: number; readonly text: string | undefined; readonly state: State }
  const found = new Map<string, Found>()
  let begun = 0

  async function read(id: string): Promise<Found> {
    const number = (begun += 1)
    const text = await store.cursor(toName(id))
    const before = found.get(id)
    // a read that began earlier and ends later must not restore an old state, such as a token that was revoked since
    if (before !== undefined && number < before.number) return before
    const now = { number, text, state: before !== undefined && before.text === text ? before.state : parse(text) }
    found.set(id, now)
    return now
  }

  return {
    known: (id) => found.get(id)?.state,
    read: async (id) => (await read(id)).state,
    async update(id, change) {
      await updateCursor(store, toName(id), (text) => JSON.stringify(change(parse(text))))
      await read(id)
    },
  }
}

/** The throttle `own`, which also locks out a client that failed too often at all gateways together. `scope` names the throttle. */
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
    // if the store is unavailable, only the shared count is lost, not the request; this gateway also counts
    await store.noteFailures({ scope, clients, ...lockRule }).catch(() => undefined)
  }

  return {
    readLockSeconds(client) {
      const until = locked.get(client)
      const shared = until === undefined ? 0 : Math.ceil((until - performance.now()) / 1_000)
      const mine = own.readLockSeconds(client)
      return shared > 0 ? Math.max(shared, mine ?? 0) : mine
    },
    fail(client) {
      own.fail(client)
      if (failures.size >= maxClients && !failures.has(client)) return
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

type SharedSecrets = { readonly secrets: readonly string[]; readonly armedUntil: number }

/**
 * Keeps the secrets of each `secretsName` in the store, with the end of the window in which another one is accepted. `own`: the file of this
 * gateway, where commands on its machine read them. `names`: the `secretsName` of each mapping whose sender gives a secret.
 */
function shareHandshakeSecrets(
  own: SecretFile,
  parts: Parts<'cursor' | 'appendAll'> & { readonly clock: Clock; readonly names: () => readonly string[] },
): HandshakeSecrets & Stoppable {
  const { store, clock, names, log } = parts
  const { known, read, update } = createSharedCursors<SharedSecrets>({
    store,
    toName: (id) => `handed/${id}`,
    // as: only this file writes the cursor
    parse: (text = '{"secrets":[],"armedUntil":0}') => JSON.parse(text) as SharedSecrets,
  })
  const reading = startPolling(async () => {
    for (const name of names()) await read(name)
  }, log)

  return {
    find(id) {
      const shared = known(id)?.secrets ?? []
      return shared.length > 0 ? shared : own.find(id)
    },
    isArmed: (id) => clock() < (known(id)?.armedUntil ?? 0),
    async arm(id) {
      const armedUntil = clock() + armedForMs
      await update(id, ({ secrets }) => ({ secrets, armedUntil }))
      return armedUntil
    },
    async save(id, secret) {
      await update(id, ({ secrets, armedUntil }) => {
        if (clock() >= armedUntil) throw new Problem('unauthorized', 'Another handshake was accepted first.')
        return { secrets: addSecret(secret, secrets), armedUntil: 0 }
      })
      await own.write(id, secret)
    },
    stop: reading.stop,
  }
}
