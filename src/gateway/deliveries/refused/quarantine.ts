// Keeps refused requests, sealed, so that they can run when a secret is corrected. They are stored after they are answered, in small batches.
// Under a flood, requests are dropped, so that the gateway keeps its time, memory and disk for accepted requests.
import { QuarantineConfig } from '../../../model/config/hooks.ts'
import { hideFieldNames } from '../../../core/model/issue.ts'
import type { Log } from '../../../base/log.ts'
import { type Problem, type ProblemCode, problems, type TraceEntry } from '../../../core/model/problem.ts'
import type { Generation } from '../../generation/generation.ts'
import { type Hook, toHookLabel } from '../../../core/mapping/hook.ts'
import type { QuarantineBounds, SealedRequest } from '../../../store/quarantine.ts'
import type { Clock, Store } from '../../../store/store.ts'
import type { ShownProof, Signature } from '../../proofs/verifiers/signature.ts'
import { createKnownNetworks, toNetwork } from '../network.ts'
import { createQuarantineKeys, type RawRequest, seal } from './seal.ts'

/**
 * The refusals after which a request is kept: those whose cause the operator can correct. A request is not kept if only the sender can correct
 * it (its encoding, its Idempotency-Key, a token in the URL), if its body is incomplete, or if the sender repeats it anyway.
 */
const correctableCodes: ReadonlySet<ProblemCode> = new Set([
  'unauthorized',
  // a sender with a wrong secret is soon locked out
  'rate-limited',
  'proof-unavailable',
  'body-invalid',
  'media-type-unsupported',
  'payload-invalid',
  'session-key-denied',
  'agent-denied',
  'model-denied',
  'too-many-items',
  'store-full',
])

/** A refusal in the list of refusals. `path` has no query. */
export type RefusalRecord = {
  readonly requestId: string
  readonly receivedAt: number
  readonly hook: string | undefined
  readonly client: string
  /** `openclaw-header`: the only token is in `x-openclaw-token`, which is not read. `denied-token`: the token lacks the right, or has expired. */
  readonly credential:
    | 'none'
    | 'openclaw-header'
    | 'not-bearer'
    | 'repeated'
    | 'gateway-token'
    | 'wrong-token'
    | 'denied-token'
    | 'hook-token'
  /** Path of the URL, without its query. */
  readonly path: string
  readonly status: number
  readonly code: ProblemCode
  readonly error: string
  readonly trace: readonly TraceEntry[]
  /** The signature that the headers of the request show, if no proof was tried. */
  readonly signature?: Signature | undefined
  /** The headers of the proof that came, cut; missing if none came, or if another thing was refused. */
  readonly proofs?: readonly ShownProof[] | undefined
}

/** The reason of a refusal, in words of the gateway only: a payload, a schema or code may have chosen the words of the problem. */
export function describeKeptReason({ code, message }: Pick<Problem, 'code' | 'message'>): string {
  if (code === 'payload-invalid') return hideFieldNames(message)
  return correctableCodes.has(code) || code === 'conflict' ? message : `${problems[code].title}.`
}

export type Quarantine = {
  /** Whether a request whose body has this many bytes may be kept. */
  accepts(bytes: number): boolean
  /** Keeps a refused request, if its refusal can be corrected and its body is small enough. Returns why it is not kept; undefined if it is. */
  note(refusal: RefusalRecord, hook: Hook, request: RawRequest): string | undefined
  /** Remembers that a hook let in a request of this client. `label`: see `toHookLabel`. */
  readonly noteAdmitted: (label: string, client: string) => void
  /** Whether a request waits to be written, or is being written. */
  isWaiting(requestId: string): boolean
  /** Writes the requests that wait. */
  flush(): Promise<void>
  stop(): Promise<void>
}

type QuarantineParts = {
  readonly store: Pick<Store, 'quarantine'>
  readonly generation: () => Generation
  readonly keys: ReturnType<typeof createQuarantineKeys>
  readonly clock: Clock
  readonly log: Log
}

const dayMs = 86_400_000
/** The pause between two writes. It limits them to 256 requests and 2 MiB a second, because the accepted requests need the disk. */
const pauseMs = 250
const batchRequests = 64
const batchBytes = 512 * 1_024
/** If more requests or bytes than this wait in memory, only a network below its share may add a request: see `hasRoomFor`. */
const maxWaiting = 4_000
const maxWaitingBytes = 32 * 1_024 * 1_024
const warnEveryMs = 60_000
const pruneEveryMs = 3_600_000

type Waiting = {
  readonly refusal: RefusalRecord & { readonly hook: string }
  readonly request: RawRequest
  readonly hookLabel: string
  readonly network: string
  readonly isKnown: boolean
  readonly bytes: number
}

/** The settings; undefined if no request may be kept. Without a gateway token, no command could run the kept requests. */
function findSettings({ hooks, gateway }: Generation['config']) {
  return hooks.quarantine === false || gateway.token === undefined ? undefined : hooks.quarantine
}

export function createQuarantine({ store, generation, keys, clock, log }: QuarantineParts): Quarantine {
  const waiting = createFairQueue()
  let inBatch: ReadonlySet<string> = new Set()
  const knownNetworks = createKnownNetworks()
  let writing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let isStopping = false
  let lost = 0
  let warnedAt: number | undefined

  const pruning = setInterval(() => void prune(), pruneEveryMs).unref()

  function countLost(requests: number): void {
    lost += requests
    const now = clock()
    if (warnedAt !== undefined && now - warnedAt < warnEveryMs) return
    log.warn(
      { requests: lost },
      'Refused requests were not kept: too many came at once, or the store cannot be written.',
    )
    warnedAt = now
    lost = 0
  }

  function schedule(): void {
    if (waiting.size === 0 || isStopping) return
    timer ??= setTimeout(() => {
      timer = undefined
      void flush(1)
    }, pauseMs).unref()
  }

  /** Writes the waiting requests, in at most this many batches. */
  function flush(batches = Number.POSITIVE_INFINITY): Promise<void> {
    writing = write(writing, batches)
    return writing
  }

  async function write(before: Promise<void> | undefined, batches: number): Promise<void> {
    await before
    for (let left = batches; left > 0 && waiting.size > 0; left -= 1) await writeBatch()
    schedule()
  }

  async function writeBatch(): Promise<void> {
    const batch = waiting.take(batchRequests, batchBytes)
    inBatch = new Set(batch.map(({ refusal }) => refusal.requestId))
    const { config } = generation()
    const { token } = config.gateway
    const settings = findSettings(config)
    try {
      if (token === undefined || settings === undefined) return
      const key = await keys(token)
      const sealed = batch.map(({ refusal, request, hookLabel, network, isKnown }): SealedRequest => {
        const { requestId, receivedAt, hook } = refusal
        const arrival = { requestId, receivedAt, hook }
        const shown = { hookLabel, network, isKnown, refusal: JSON.stringify(refusal), keyId: key.id }
        return { ...arrival, ...shown, sealed: seal(request, arrival, key) }
      })
      await store.quarantine(sealed, toBounds(settings))
    } catch (error) {
      log.debug({ err: error }, 'refused requests could not be written')
      countLost(batch.length)
    } finally {
      inBatch = new Set()
    }
  }

  function toBounds({ maxRequests, maxBytes, days }: QuarantineConfig): QuarantineBounds {
    return { maxRequests, maxBytes, olderThan: clock() - days * dayMs }
  }

  /** Deletes kept requests beyond the settings. If `hooks.quarantine` is false, the default settings apply to those that are still there. */
  async function prune(): Promise<void> {
    const { quarantine: settings } = generation().config.hooks
    const bounds = toBounds(settings === false ? QuarantineConfig.parse({}) : settings)
    await store.quarantine([], bounds).catch(() => undefined)
  }

  return {
    accepts(bytes) {
      const settings = findSettings(generation().config)
      return settings !== undefined && bytes <= settings.maxBodyBytes
    },
    note(refusal, hook, request) {
      const settings = findSettings(generation().config)
      if (settings === undefined)
        return 'hooks.quarantine is false, or there is no gateway token, which seals what is kept'
      if (hook.kind === 'unknown' || refusal.hook === undefined) return 'no hook has this name'
      if (isStopping) return 'the gateway was stopping'
      if (!correctableCodes.has(refusal.code)) return 'only its sender can correct it'
      if (request.body.byteLength > settings.maxBodyBytes)
        return `its body has more than ${settings.maxBodyBytes} bytes (hooks.quarantine.maxBodyBytes)`
      // this token opens no hook, and it is the key of the seal
      if (refusal.credential === 'gateway-token') return 'it carried the gateway token'
      const hookLabel = toHookLabel(hook, refusal.hook)
      const network = toNetwork(refusal.client)
      const bytes = request.body.byteLength + request.rawHeaders.reduce((sum, text) => sum + text.length, 0)
      const isKnown = knownNetworks.has(hookLabel, network)
      const kept = { ...refusal, hook: refusal.hook }
      const entry = { refusal: kept, request: removeForeignCredentials(request), hookLabel, network, isKnown, bytes }
      const isKept = waiting.add(entry)
      if (!isKept) countLost(1)
      schedule()
      return isKept ? undefined : 'too many refused requests came at once'
    },
    noteAdmitted: knownNetworks.add,
    isWaiting: (requestId) => waiting.has(requestId) || inBatch.has(requestId),
    flush: () => flush(),
    async stop() {
      isStopping = true
      clearInterval(pruning)
      clearTimeout(timer)
      await flush()
    },
  }
}

/** Headers that are removed: credentials for other sites and for proxies, which prove nothing to the gateway. */
const foreignCredentials: ReadonlySet<string> = new Set(['cookie', 'proxy-authorization'])

function removeForeignCredentials(request: RawRequest): RawRequest {
  const { rawHeaders } = request
  const kept = rawHeaders.filter(
    (_, index) => !foreignCredentials.has((rawHeaders[index - (index % 2)] ?? '').toLowerCase()),
  )
  return { ...request, rawHeaders: kept }
}

/**
 * The waiting requests, in order. When the queue is full, a network of a hook adds no more than its share, and all together add only a little.
 * `add` searches nothing, so that a flood costs little.
 */
function createFairQueue() {
  const all = new Map<string, Waiting>()
  const counts = new Map<string, number>()
  let bytes = 0
  const toShareKey = ({ hookLabel, network }: Waiting) => `${hookLabel}\0${network}`

  function hasRoomFor(entry: Waiting): boolean {
    const load = Math.max(all.size / maxWaiting, bytes / maxWaitingBytes)
    if (load < 1) return true
    const isOverShare = (counts.get(toShareKey(entry)) ?? 0) >= all.size / counts.size
    return !isOverShare && load < (entry.isKnown ? 1.5 : 1.25)
  }

  return {
    get size() {
      return all.size
    },
    has: (requestId: string) => all.has(requestId),
    /** Returns false if there is no room. */
    add(entry: Waiting): boolean {
      if (!hasRoomFor(entry)) return false
      all.set(entry.refusal.requestId, entry)
      bytes += entry.bytes
      counts.set(toShareKey(entry), (counts.get(toShareKey(entry)) ?? 0) + 1)
      return true
    },
    /** Takes the oldest requests, at least one. */
    take(requests: number, limit: number): Waiting[] {
      const taken: Waiting[] = []
      let size = 0
      for (const [requestId, entry] of all) {
        if (taken.length > 0 && (taken.length >= requests || size + entry.bytes > limit)) break
        taken.push(entry)
        size += entry.bytes
        bytes -= entry.bytes
        all.delete(requestId)
        const left = (counts.get(toShareKey(entry)) ?? 1) - 1
        if (left === 0) counts.delete(toShareKey(entry))
        else counts.set(toShareKey(entry), left)
      }
      return taken
    },
  }
}
