// GET /api/spending: what runs cost. The store is read in short steps, so that the count delays no other request.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { groupBy } from '../../../base/group.ts'
import { Problem } from '../../../core/model/problem.ts'
import { findDearest } from '../../../model/api/dearest.ts'
import type { SpendingFields, SpendingRow } from '../../../model/api/spending.ts'
import { findTurnUsd } from '../../deliveries/budgets.ts'
import type { Config } from '../../../model/config/config.ts'
import type { Spent } from '../../../store/spent.ts'
import type { StoreReader } from '../../../store/store.ts'
import { toIsoTime } from '../../deliveries/records.ts'
import type { Handlers } from './handlers.ts'
import { countSince } from './hour-of-store.ts'
import type { ApiParts } from './parts.ts'
import { readMoment } from './query.ts'

const dayMs = 86_400_000
const maxDays = 31
const stepRows = 2_000
/** Older runs are not counted: this many take some seconds. */
const maxSteps = 50
/** Pages that ask at the same time, or soon after each other, share a count. */
const keptMs = 5_000

export function handleSpending({ store, generation, clock }: Pick<ApiParts, 'store' | 'generation' | 'clock'>) {
  let last: { readonly since: number; readonly at: number; readonly read: Promise<Counted> } | undefined
  return {
    'GET /api/spending': async ({ query }) => {
      const now = clock()
      const since = readMoment(query, 'since') ?? now - dayMs
      if (since < now - maxDays * dayMs) throw new Problem('usage-invalid', `since: at most ${maxDays} days ago.`)
      if (last === undefined || last.since !== since || now - last.at > keptMs) {
        const read = countAll(store, since)
        last = { since, at: now, read }
        read.catch(() => (last = undefined))
      }
      return toFields(since, await last.read, generation().config)
    },
  } satisfies Partial<Handlers>
}

type Counted = {
  readonly since: number
  readonly spent: readonly Spent[]
  readonly states: Readonly<Record<'all' | 'parked' | 'pending', number>>
}

async function countAll(store: Pick<StoreReader, 'spent' | 'stepBack' | 'tally'>, since: number): Promise<Counted> {
  const { tallies, since: talliedSince } = await countSince(store, { since, every: 'hour' })
  const count = (state?: string) =>
    tallies.reduce((sum, tally) => sum + (state === undefined || tally.state === state ? tally.count : 0), 0)
  const states = { all: count(), parked: count('parked'), pending: count('pending') }
  const spent: Spent[] = []
  let before: number | undefined
  for (let steps = 1; ; steps += 1) {
    const { groups, next } = await store.spent({ since, before, rows: stepRows })
    spent.push(...groups)
    if (next === undefined) return { since: talliedSince, spent, states }
    if (steps === maxSteps) {
      const oldest = groups.reduce((day, group) => Math.min(day, group.day), Infinity)
      return { since: Math.max(talliedSince, since + (oldest + 1) * dayMs), spent, states }
    }
    before = next
    await nextTurn()
  }
}

const hasFailed = ({ state }: Spent) => state === 'dead' || state === 'failing'
const sum = <Item>(items: readonly Item[], read: (item: Item) => number) =>
  items.reduce((total, item) => total + read(item), 0)

function toFields(asked: number, { since, spent, states }: Counted, config: Config): SpendingFields {
  const groups = groupBy(spent, ({ day, hook, agentId, model }) => JSON.stringify([day, hook, agentId, model]))
  const rows = [...groups.values()].map((all) => toRow(asked, all, config))
  const priced = rows.flatMap(({ usd }) => usd ?? [])
  const limits = Object.values(config.budgets).flatMap(({ usd, period }) => (period === '1d' ? (usd ?? []) : []))
  return {
    since: toIsoTime(since),
    deliveries: states.all,
    failed: states.parked + sum(spent.filter(hasFailed), ({ runs }) => runs),
    waiting: states.pending + sum(spent, ({ state, runs }) => (state === 'waiting' ? runs : 0)),
    inputTokens: sum(rows, ({ inputTokens }) => inputTokens),
    outputTokens: sum(rows, ({ outputTokens }) => outputTokens),
    usd: priced.length === 0 ? null : sum(priced, (usd) => usd),
    budgetUsd: limits.length === 0 ? null : Math.min(...limits),
    p95Ms: findPercentile(spent),
    rows: rows.toSorted((one, other) => (one.day < other.day ? -1 : 1)),
  }
}

function toRow(since: number, all: readonly [Spent, ...Spent[]], { models }: Config): SpendingRow {
  const [{ day, hook, agentId, model }] = all
  const add = (name: 'inputTokens' | 'outputTokens' | 'cachedInputTokens' | 'cacheWriteTokens') =>
    sum(all, (each) => each[name])
  const reported = all.flatMap(({ costUsd }) => costUsd ?? [])
  const used = {
    inputTokens: add('inputTokens'),
    outputTokens: add('outputTokens'),
    cachedInputTokens: add('cachedInputTokens'),
    cacheWriteTokens: add('cacheWriteTokens'),
    costUsd: reported.length === 0 ? undefined : sum(reported, (usd) => usd),
  }
  const findUsd = ({ costUsd, ...tokens }: typeof used) =>
    findTurnUsd({ ...tokens, ...(costUsd !== undefined && { costUsd }) }, model, models) ?? null
  const candidates = all.flatMap(({ dearest }) =>
    dearest === undefined
      ? []
      : { deliveryId: dearest.deliveryId, usd: findUsd(dearest), tokens: dearest.inputTokens + dearest.outputTokens },
  )
  return {
    day: toIsoTime(since + day * dayMs),
    hook: hook === '' ? null : hook,
    agentId,
    model: model === '' ? null : model,
    runs: sum(all, ({ runs }) => runs),
    failed: sum(all.filter(hasFailed), ({ runs }) => runs),
    uncounted: sum(all, ({ runs, counted }) => runs - counted),
    inputTokens: used.inputTokens,
    outputTokens: used.outputTokens,
    usd: findUsd(used),
    dearest: findDearest(candidates),
  }
}

function findPercentile(spent: readonly Spent[]): number | null {
  const done = spent
    .flatMap(({ tookMs, runs }) => (tookMs === undefined ? [] : [{ tookMs, runs }]))
    .toSorted((one, other) => one.tookMs - other.tookMs)
  let left = Math.ceil(sum(done, ({ runs }) => runs) * 0.95)
  return done.find(({ runs }) => (left -= runs) <= 0)?.tookMs ?? null
}
