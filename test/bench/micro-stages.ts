// The stages of one accepted request, each measured alone: the functions of the gateway, called with the arguments of a request of 1 kB.
import { randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { newId } from '../../src/base/id.ts'
import { notifyAll } from '../../src/base/listeners.ts'
import type { JsonValue } from '../../src/base/json.ts'
import { ConfigSchema } from '../../src/gateway/config/keys.ts'
import { Mapping } from '../../src/core/model/mapping.ts'
import { silentLog } from '../../src/base/log.ts'
import { createGeneration } from '../../src/gateway/generation/generation.ts'
import { decide } from '../../src/core/mapping/pipeline.ts'
import { createAccess } from '../../src/gateway/http/access.ts'
import { createServed } from '../../src/gateway/http/served.ts'
import { createAdmission } from '../../src/gateway/http/admission.ts'
import { readBody } from '../../src/gateway/http/body.ts'
import { buildDelivery, buildAdmittedHead } from '../../src/core/mapping/delivery.ts'
import { readDedupe } from '../../src/gateway/deliveries/duplicates.ts'
import { createHandshakeSecrets } from '../../src/gateway/http/handshake-secrets.ts'
import { createMetrics } from '../../src/gateway/http/metrics.ts'
import { createEntry } from '../../src/gateway/http/entry.ts'
import { createReceiver } from '../../src/gateway/http/receive.ts'
import { createRefuser } from '../../src/gateway/http/refuse.ts'
import { createAwaits } from '../../src/gateway/http/awaits.ts'
import { createRuns } from '../../src/gateway/http/runs.ts'
import { createWaiters } from '../../src/gateway/http/waiters.ts'
import { createSenderWatch } from '../../src/gateway/deliveries/senders/watch.ts'
import { createShapeLearner } from '../../src/gateway/deliveries/shapes/learner.ts'
import { createQuarantine } from '../../src/gateway/deliveries/refused/quarantine.ts'
import { createQuarantineKeys } from '../../src/gateway/deliveries/refused/seal.ts'
import { Refusals } from '../../src/gateway/http/refusals.ts'
import { createArrivals } from '../../src/gateway/deliveries/arrivals.ts'
import { countStored, type OnStored } from '../../src/gateway/deliveries/listeners.ts'
import { logStored } from '../../src/gateway/deliveries/log-lines.ts'
import { createModuleState } from '../../src/gateway/deliveries/module-state.ts'
import { Rerunner } from '../../src/gateway/deliveries/rerun.ts'
import { createSettler } from '../../src/gateway/deliveries/settle.ts'
import { createHookApp } from '../../src/gateway/http/server.ts'
import { toDeliveryRow, toSettlement } from '../../src/gateway/deliveries/settlement.ts'
import { toFirstAnswer } from '../../src/gateway/deliveries/answers.ts'
import { createThrottle } from '../../src/gateway/http/throttle.ts'
import { runBatch } from '../../src/store/sqlite/batch.ts'
import type { Operation } from '../../src/store/sqlite/operations.ts'
import { createWriterConnection } from '../../src/store/sqlite/owner.ts'
import { createMemoryStore, createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { toAppend } from '../../src/store/sqlite/values.ts'
import { createEventBody } from './events.ts'
import { benchMapping } from './gateway.ts'
import { createRequests, type Received } from './micro-requests.ts'
import type { MicroStage } from './figures.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

export type Stage = {
  readonly name: MicroStage
  /** The number of requests that one call handles. */
  readonly requests: number
  /** Prepares this number of calls, each with its own arguments. Only the calls are measured, not their preparation. */
  readonly prepare: (calls: number) => Promise<(() => unknown)[]>
}

const bodyBytes = 1000
const token = 'bench-token-0123456789abcdef'
/** The number of requests in a batch: about as many as arrive during a commit with 64 connections. */
const batch = 32
const limits = { limit: 262_144, timeoutMs: 15_000 }

/** A writer thread without a database, whose only cost is the queue and the transfer. */
const echoWriter = `const { parentPort } = require('node:worker_threads')
const value = { kind: 'stored' }
parentPort.on('message', ({ kind, operations }) => {
  if (kind === 'close') return parentPort.close()
  const outcomes = operations.map(() => ({ ok: true, value }))
  parentPort.postMessage({ opened: undefined, result: { outcomes, waitingBytes: 0 } })
})`

export async function createStages(folder: string): Promise<Stage[]> {
  const clock = Date.now
  const dir = mkdtempSync(join(folder, 'store-'))
  const config = ConfigSchema.parse({ hooks: { enabled: true, token } })
  const mapping = { ...Mapping.parse(benchMapping), id: 'bench' }
  const generation = createGeneration({ senders: builtInSenders, config, mappings: [mapping], transforms: new Map() })
  const hook = generation.findHook('bench')
  const access = createAccess({ clock })
  const { checkHead, ...admission } = createAdmission({
    access,
    tokens: createThrottle({ clock }),
    signers: createThrottle({ clock }),
  })
  const newRequests = createRequests({ path: '/hooks/bench', token, bytes: bodyBytes })
  const event = createEventBody(bodyBytes, 1)
  let serial = 0

  const repeatMake = <Item>(count: number, make: () => Item) => Array.from({ length: count }, make)
  const nextBody = () => {
    serial += 1
    event.renumber(serial)
    return Buffer.from(new Uint8Array(event.bytes).buffer)
  }
  const [first] = await newRequests(1)
  if (first === undefined) throw new Error('No request arrived.')
  const checked = checkHead(first.req, generation)
  const proof = { signedFor: [], signedId: undefined, source: undefined }
  const parseDelivery = (body: Buffer<ArrayBuffer>) => {
    const place = { hook, id: newId(), receivedAt: clock() }
    const delivery = buildDelivery(buildAdmittedHead(checked, hook.secretHeaders, proof), body, place)
    return { delivery, dedupe: readDedupe(delivery) }
  }
  const makeDecision = async () => {
    const { delivery } = parseDelivery(nextBody())
    const decision = await decide(delivery, { hook, newId })
    if (decision.kind !== 'accept') throw new Error(`The decision of the bench is ${decision.kind}.`)
    return { delivery, decision }
  }
  const planSettlement = ({ delivery, decision }: Awaited<ReturnType<typeof makeDecision>>) => {
    const settlement = toSettlement(decision, delivery, { generation, newId, now: clock(), keepByDefault: false })
    const answer = toFirstAnswer(decision, delivery.id, settlement, false)
    return { row: toDeliveryRow(delivery, { settlement, answer, dedupe: undefined }), answer }
  }
  const planRows = async (count: number) => {
    const decided = await Promise.all(repeatMake(count, makeDecision))
    return decided.map((one) => planSettlement(one).row)
  }

  const store = createSqliteStore({
    file: join(dir, 'unused.db'),
    clock,
    spawn: () => new Worker(echoWriter, { eval: true }),
  })
  const { db } = createWriterConnection({
    file: join(dir, 'bench.db'),
    commitDelayMs: 0,
    recoverAt: undefined,
  }).acquire()
  const { port1: toWriter, port2: ofWriter } = new MessageChannel()
  const { answer } = planSettlement(await makeDecision())
  const answering = createHookApp({ receive: async () => answer, newId: randomUUID, log: silentLog })
  const receive = createWholePipe()

  return [
    {
      name: 'parse',
      requests: 1,
      prepare: async (calls) =>
        repeatMake(calls, () => {
          const text = nextBody().toString('utf8')
          return (): JsonValue => JSON.parse(text)
        }),
    },
    {
      name: 'admit',
      requests: 1,
      prepare: async (calls) =>
        (await newRequests(calls)).map(
          ({ req }) =>
            () =>
              admission.checkToken(checkHead(req, generation)),
        ),
    },
    {
      name: 'read',
      requests: 1,
      prepare: async (calls) =>
        (await newRequests(calls)).map(
          ({ req }) =>
            () =>
              readBody(req, limits),
        ),
    },
    {
      name: 'check and parse',
      requests: 1,
      prepare: async (calls) =>
        repeatMake(calls, () => {
          const body = nextBody()
          return () => parseDelivery(body)
        }),
    },
    {
      name: 'match and render',
      requests: 1,
      prepare: async (calls) =>
        repeatMake(calls, () => {
          const { delivery } = parseDelivery(nextBody())
          return () => decide(delivery, { hook, newId })
        }),
    },
    {
      name: 'plan rows',
      requests: 1,
      prepare: async (calls) =>
        (await Promise.all(repeatMake(calls, makeDecision))).map((decided) => () => planSettlement(decided)),
    },
    {
      name: 'hand to the writer',
      requests: batch,
      prepare: (calls) =>
        Promise.all(
          repeatMake(calls, async () => {
            const rows = await planRows(batch)
            return () => Promise.all(rows.map((row) => store.append(row)))
          }),
        ),
    },
    {
      name: 'commit',
      requests: batch,
      prepare: (calls) =>
        Promise.all(
          repeatMake(calls, async () => {
            const operations = (await planRows(batch)).map((row) => toAppend(row, clock()))
            return () => commit(operations)
          }),
        ),
    },
    {
      name: 'answer',
      requests: 1,
      prepare: async (calls) => {
        const requests = await newRequests(calls)
        await Promise.all(requests.map(({ req }) => readBody(req, limits)))
        return requests.map(({ req, res, sent }) => () => {
          answering(req, res)
          return sent
        })
      },
    },
    {
      name: 'whole pipe',
      requests: 1,
      prepare: async (calls) => (await newRequests(calls)).map((request) => () => receiveOne(request)),
    },
  ]

  /** Commits like the writer thread: receives the batch as one message, and sends its outcomes as one. */
  function commit(sent: readonly Operation[]): void {
    post(toWriter, sent)
    // as: the line above sent this message
    const operations = receiveMessageOnPort(ofWriter)?.message as readonly Operation[]
    const { waitingChange } = runBatch({ db, operations, isBulk: true })
    post(ofWriter, { outcomes: undefined, waitingChange })
    receiveMessageOnPort(toWriter)
  }

  /** All work before the answer, with a store that is ready at once. */
  function createWholePipe() {
    const stored = { ...createMemoryStore({ clock }), append: async () => ({ kind: 'stored' }) as const }
    const shared = {
      generation: () => generation,
      acquire: () => () => {},
      store: stored,
      clock,
      newId,
      log: silentLog,
    }
    const { meter } = createMetrics({ store: stored, config: () => generation.config, clock })
    const keys = createQuarantineKeys()
    const quarantine = createQuarantine({ store: stored, generation: () => generation, keys, clock, log: silentLog })
    const senders = createSenderWatch({
      store: stored,
      generation: shared.generation,
      clock,
      duty: { isHeld: () => true },
      alert: async () => true,
      log: silentLog,
    })
    const shapes = createShapeLearner({ store: stored, development: false, log: silentLog })
    const settler = createSettler({
      ...shared,
      state: createModuleState(shared),
      keepByDefault: false,
      lookForNew: () => {},
      onStored: notifyAll<Parameters<OnStored>>(silentLog, [
        (stored) => countStored(stored, meter),
        (stored) => logStored(stored, silentLog),
        senders.onStored,
        ({ kind, delivery, hook: of }) => kind === 'new' && shapes.note(delivery, of),
      ]),
      onRepeated: () => {},
      onDecided: () => {},
    })
    const rerunner = new Rerunner({ ...shared, settler })
    const refusals = new Refusals(false)
    const admitting = { checkHead, ...admission }
    const handed = createHandshakeSecrets({ file: join(dir, 'handed.json'), clock })
    const auditor = { perform: <Result>(_act: unknown, work: () => Promise<Result>) => work() }
    const waiters = createWaiters({ ...shared, access })
    return createReceiver({
      ...shared,
      entry: createEntry({ admission: admitting, handed, refusals, quarantine, findRunner: () => undefined }),
      arrivals: createArrivals({ ...shared, settler, rerunner, onRepeated: () => {}, development: false }),
      runs: createRuns({ ...shared, access, auditor, waiters, lookForJobs: () => {} }),
      awaits: createAwaits({ ...shared, waiters }),
      served: createServed(admitting),
      refuse: createRefuser({ admission: admitting, quarantine, onRefused: () => {}, clock, development: false }),
      refusals,
      quarantine,
    }).receive
  }

  function post(port: MessagePort, message: unknown): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
    port.postMessage(message)
  }

  async function receiveOne({ req, res }: Received): Promise<void> {
    const { status } = await receive({ req, res, requestId: 'bench', continueNow: () => {} })
    if (status !== 200) throw new Error(`The pipe of the bench answered ${status}.`)
  }
}
