// The rows about runs of agents: a queue before a slow model, and several gateways on one Postgres.
import { setTimeout as pause } from 'node:timers/promises'
import { createDice } from '../../e2e/load.ts'
import { seed } from '../../seed.ts'
import { createClient } from '../client.ts'
import type { Figures } from '../probes.ts'
import { createSchema } from '../probe-postgres.ts'
import { token } from '../run.ts'
import { computeMedian } from '../statistics.ts'
import { startTimedModel, type TimedModel } from './model.ts'
import { startOperated } from './operated.ts'
import { type RowOptions, withStage } from './stage.ts'

const queuedTurns = 1_000
const sessions = 50
/** The length of a turn at `--seconds 600`. Shorter runs of the bench have shorter turns. */
const turnSeconds = { least: 2, most: 30, at: 600 }
/** While requests are measured, turns are longer, up to their full length: what is measured is a long queue, and not many runs a second. */
const computeMeasuredScale = (seconds: number) => Math.max(0.1, Math.min(1, seconds / 60))
const drainMs = 3_600_000

const buildAgentConfig = (baseUrl: string, maxConcurrent: number) => ({
  models: { providers: { slow: { kind: 'openai-compatible', baseUrl, apiKey: 'none', stream: false } } },
  agents: { defaults: { model: 'slow/slow', maxConcurrent, maxTurnsPerHour: 0, heartbeat: { every: '0' } } },
})

const work = {
  match: { path: 'work' },
  action: 'agent',
  sessionKey: 'hook:{{session}}',
  messageTemplate: 'work [{{session}}.{{number}}]',
  deliver: false,
}

/** L5 */
export async function measureQueuedRuns(options: RowOptions): Promise<Figures> {
  const pickBelow = createDice(seed)
  const { least, most, at } = turnSeconds
  let scale = Math.max(computeMeasuredScale(options.seconds), options.seconds / at)
  const pickTurnMs = () => (least * 1_000 + pickBelow((most - least) * 1_000)) * scale
  const model = await startTimedModel(pickTurnMs)
  try {
    const config = buildAgentConfig(model.url, 8)
    return await withStage({ ...options, config, mappings: [work] }, async ({ gateway, dir, send }) => {
      const sendWakes = () => send({ perSecond: 200, connections: 16, seconds: Math.min(20, options.seconds) })
      const alone = await sendWakes()
      const queued = await queueTurns({ port: gateway.port, receipts: `${dir}/receipts`, pickBelow })
      const beside = await sendWakes()
      const left = queuedTurns - model.starts.size
      scale = options.seconds / at
      await waitForTurns(model, queuedTurns)
      // before and after, so that noise of the machine affects both
      const aloneMs = computeMedian([alone.p99Ms, (await sendWakes()).p99Ms])
      return {
        alone: aloneMs,
        beside: beside.p99Ms,
        ratio: beside.p99Ms / aloneMs,
        left,
        ...judgeTurns(model, queued),
      }
    })
  } finally {
    await model.close()
  }
}

/** The moments at which turns were acknowledged, by their names, such as `4.17`: the session and the number in it. */
type Queued = ReadonlyMap<string, number>

/** Each session sends its turns one after the other, all sessions at once, in an order that changes. */
async function queueTurns(options: {
  readonly port: number
  readonly receipts: string
  readonly pickBelow: (limit: number) => number
}): Promise<Queued> {
  const { port, receipts, pickBelow } = options
  const client = createClient({ port, token, receipts })
  const queued = new Map<string, number>()
  for (let number = 0; number < queuedTurns / sessions; number += 1) {
    const order = Array.from({ length: sessions }, (_, session) => ({ session, at: pickBelow(1_000_000) }))
    const shuffled = order.toSorted((a, b) => a.at - b.at)
    await Promise.all(
      shuffled.map(async ({ session }) => {
        const status = await client.post('/hooks/work', { session, number })
        if (status !== 200) throw new Error(`A run is answered ${status}.`)
        queued.set(`${session}.${number}`, performance.now())
      }),
    )
  }
  return queued
}

async function waitForTurns({ ends }: Pick<TimedModel, 'ends'>, wanted: number): Promise<void> {
  const end = performance.now() + drainMs
  while (ends.length < wanted && performance.now() < end) await pause(50)
}

/** Counts turns that never came to the model, that came twice, and that came before an earlier one of their session had ended. */
function judgeTurns({ starts, ends, calls }: TimedModel, queued: Queued): Record<string, number> {
  const waits = new Map<string, number>()
  let outOfOrder = 0
  for (const [name, acknowledgedAt] of queued) {
    const [session = '', number = ''] = name.split('.')
    const startedAt = starts.get(name) ?? Number.NaN
    waits.set(session, Math.max(waits.get(session) ?? 0, startedAt - acknowledgedAt))
    const before = ends.find((end) => end.name === `${session}.${Number(number) - 1}`)
    if (before !== undefined && startedAt < before.at) outOfOrder += 1
  }
  const longest = [...waits.values()]
  return {
    'runs lost': [...queued.keys()].filter((name) => !starts.has(name)).length,
    'runs twice': calls - starts.size,
    'out of order': outOfOrder,
    fairness: Math.max(...longest) / Math.min(...longest),
    'longest wait': Math.max(...longest) / 1_000,
  }
}

const fleetTurnMs = 100
const fleetSlots = 8
const maxFleetSeconds = 15

/** L12 */
export async function measureFleet(options: RowOptions): Promise<Figures> {
  const database = process.env['HOOKLOOM_TEST_POSTGRES']
  if (database === undefined) return {}
  const figures: Record<string, number> = { 'runs lost': 0, 'runs twice': 0 }
  for (const size of [1, 2, 4]) {
    const { perSecond, lost, twice } = await measureFleetOf(size, database, options)
    figures[`fleet ${size}`] = perSecond
    figures['runs lost'] = (figures['runs lost'] ?? 0) + lost
    figures['runs twice'] = (figures['runs twice'] ?? 0) + twice
  }
  const share = (of: number, to: number) => (figures[`fleet ${of}`] ?? 0) / (figures[`fleet ${to}`] ?? 0)
  return { ...figures, 'two / one': share(2, 1), 'four / two': share(4, 2) }
}

async function measureFleetOf(size: number, database: string, { folder, built, seconds }: RowOptions) {
  const schema = await createSchema(database)
  let open: (at: number) => void = () => undefined
  const gate = new Promise<number>((resolve) => {
    open = resolve
  })
  const model = await startTimedModel(() => fleetTurnMs, gate)
  const config = { ...buildAgentConfig(model.url, fleetSlots), store: { url: schema.url } }
  const gateways = []
  try {
    for (let index = 0; index < size; index += 1) {
      gateways.push(await startOperated({ folder, built, config, mappings: [work] }))
    }
    const clients = gateways.map(({ port }) => createClient({ port, token }))
    // all of them wait before the first one may end, so that the time of their intake does not count
    const slots = size * fleetSlots
    const turnsEach = Math.ceil((Math.min(maxFleetSeconds, seconds) * 1_000) / fleetTurnMs)
    const sent = slots * turnsEach
    await Promise.all(
      Array.from({ length: slots }, async (_, lane) => {
        for (let number = 0; number < turnsEach; number += 1) {
          await clients[lane % size]?.post('/hooks/work', { session: `s${lane}x${number}`, number })
        }
      }),
    )
    const openedAt = performance.now()
    open(openedAt)
    await waitForTurns(model, sent)
    const last = Math.max(...model.ends.map(({ at }) => at))
    for (const gateway of gateways.splice(0)) await gateway.stop()
    return {
      perSecond: (model.ends.length * 1_000) / (last - openedAt),
      lost: sent - model.starts.size,
      twice: model.calls - model.starts.size,
    }
  } finally {
    for (const gateway of gateways) gateway.kill()
    await model.close()
    await schema.drop()
  }
}
