// Senders, a watch and a clock that only the test moves.
import { randomUUID } from 'node:crypto'
import { findSenderNetwork } from '../../../../src/gateway/deliveries/senders/likeness.ts'
import {
  addSeen,
  createRecord,
  type SenderRecord,
  updateRecord,
} from '../../../../src/gateway/deliveries/senders/record.ts'
import { createSenderWatch, type SenderWatch } from '../../../../src/gateway/deliveries/senders/watch.ts'
import { silentLog } from '../../../../src/base/log.ts'
import type { MappingInput } from '../../../../src/core/model/mapping.ts'
import type { ProblemCode, TraceEntry } from '../../../../src/core/model/problem.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import type { Store } from '../../../../src/store/store.ts'
import { toGeneration, toTestDelivery } from '../../core/mapping/decide.ts'

export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour

/** A Monday, 00:00 UTC. */
export const monday = Date.UTC(2026, 10, 2)

export type Sender = {
  readonly hook: string
  readonly client: string
  readonly headers: Readonly<Record<string, string>>
}

export const github: Sender = {
  hook: 'github',
  client: '140.82.115.7',
  headers: {
    'user-agent': 'GitHub-Hookshot/a1b2c3d',
    'x-github-event': 'push',
    'x-github-hook-id': '292430182',
  },
}

export const wrongSignature: TraceEntry = { mappingId: 'github', matched: false, why: 'The signature is wrong.' }

type StageOptions = {
  mappings?: readonly MappingInput[]
  config?: object
  store?: Store
  isHeld?: () => boolean
  canTell?: () => boolean
}

export function createSenderStage({ mappings, config = {}, isHeld = () => true, ...options }: StageOptions = {}) {
  let now = monday
  const told: { at: number; cause: string; text: string }[] = []
  const warnings: string[] = []
  let generation = toGeneration(mappings ?? [{ id: 'github', match: { path: 'github' }, messageTemplate: 'x' }], {
    config,
  })
  const clock = () => now
  const store = options.store ?? createMemoryStore({ clock })
  const open = (): SenderWatch =>
    createSenderWatch({
      store,
      generation: () => generation,
      clock,
      duty: { isHeld },
      alert: async (notice) => {
        if (options.canTell?.() === false) return false
        told.push({ at: now, ...notice })
        return true
      },
      log: { ...silentLog, warn: (_, text) => void warnings.push(text) },
    })
  let watch = open()
  let ids = 0

  return {
    store,
    told,
    warnings,
    clock,
    texts: () => told.map(({ text }) => text),
    setTime: (at: number) => void (now = at),
    edit: (changed: readonly MappingInput[]) => void (generation = toGeneration(changed, { config })),
    /** Another process on the same store. */
    restart: () => void (watch = open()),
    look: () => watch.look(),
    accept({ hook, client, headers }: Sender, mappingId?: string) {
      const delivery = toTestDelivery(hook, {}, { headers: addNewId(headers) })
      watch.noteAccepted(delivery, { client, hook: generation.findHook(hook), label: hook, mappingId })
    },
    refuse(
      { hook, client, headers }: Sender,
      over: { code?: ProblemCode; trace?: readonly TraceEntry[]; hasHookToken?: boolean; error?: string } = {},
    ) {
      const { code = 'unauthorized', trace = [], hasHookToken = false, error = '' } = over
      const requestId = `request-${(ids += 1)}`
      const credential = hasHookToken ? 'hook-token' : 'none'
      const answer = { receivedAt: now, path: `/hooks/${hook}`, status: 400, error }
      watch.noteRefused({ ...answer, requestId, hook, client, credential, code, trace }, addNewId(headers), generation)
    },
    /** Accepted requests of the past, as the gateway would have recorded them. */
    async recordPast(requests: readonly (Sender & { source: string; at: number })[]) {
      const records = new Map<string, SenderRecord>()
      for (const { hook, source, client, headers, at } of requests) {
        const before = records.get(hook) ?? createRecord({ hook, source }, at)
        const networks = [findSenderNetwork(client, { isForwarded: false }) ?? '']
        const seen = { first: at, last: at, count: 1, networks, headers: addNewId(headers) }
        records.set(hook, addSeen(before, seen, []))
      }
      for (const record of records.values()) await updateRecord(store, record, () => record)
    },
    /** Lets time pass, and looks at the senders every minute, as the gateway does. */
    async pass(ms: number) {
      for (const end = now + ms; now < end;) {
        now = Math.min(end, now + minute)
        await watch.look()
      }
    },
  }
}

/** Each request has another delivery id. */
function addNewId(headers: Sender['headers']): Record<string, string> {
  return { ...headers, 'x-github-delivery': randomUUID() }
}

/** Numbers from 0 to 1 that are the same in each run. */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}
