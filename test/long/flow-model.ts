// Random calls of three owners on jobs of flows. Their answers, and from time to time the store, are compared with a model: arrays of jobs, and
// loops over them. The model knows only what the documentation promises. Delays, leases, periods and holds depend on a clock that the walk moves.
import { expect } from 'vitest'
import { newId } from '../../src/base/id.ts'
import { Flow, type FlowSettings, type SharedLimits, toFlowSettings } from '../../src/core/model/flow.ts'
import type { JobState } from '../../src/model/api/answers.ts'
import type { ClaimedJob } from '../../src/model/job.ts'
import { noSpending, type Spending } from '../../src/model/spending.ts'
import type { JobReport } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'
import { createRandom } from '../contract/interleaved.ts'
import { type Moved, newDelivery, newJob } from '../contract/stage.ts'

const leaseMs = 30_000
const periodMs = 600_000
const keys = ['a', 'b', 'c'] as const
/** The sessions that all mappings share. Few jobs have one of them: otherwise all keys would soon wait for the same two sessions. */
const sharedSessions = ['s1', 's2'] as const
/** The maximum number of unfinished jobs. More jobs would make a walk slower without more findings. */
const maxUnfinished = 50

const limits = {
  llm: { total: 4, starts: { limit: 12, period: 60_000, burst: 5 } },
  customer: { total: 5, perKey: 2 },
} satisfies SharedLimits
const budget = { name: 'daily', limits: { turns: 4, tokens: 500 } } as const

/** The mappings of a walk: one for each kind of `flow`, with some random values. */
const createRings = (pick: <Item>(items: readonly [Item, ...Item[]]) => Item) =>
  [
    { name: 'queue', perKey: pick([1, 2, 3]), total: pick([2, 4]), limits: ['llm'], maxQueued: pick([2, 5, 50]) },
    { name: 'replace', onNew: 'replace', delay: '10s', maxDelay: pick(['15s', '40s']), limits: ['llm'] },
    { name: 'hasty', onNew: 'replace', priority: pick(['high', 'normal'] as const), limits: ['customer'] },
    { name: 'gather', onNew: 'gather', delay: pick(['5s', '0s']), limits: ['customer'] },
    { name: 'skip', onNew: 'skip', limits: ['llm', 'customer'] },
    { name: 'rated', rateLimit: { limit: 3, period: '2m' }, delay: pick(['0s', '3s']) },
    { name: 'brief', expires: '20s', total: 1, priority: pick(['low', 'normal'] as const) },
    { name: 'costly', limits: ['llm'], perKey: 2 },
  ].map(({ name, ...flow }) => {
    const parsed = Flow.parse(flow)
    return { name, expiresMs: parsed.expires, settings: toFlowSettings(parsed, { ring: name, rateKey: '' }) }
  })
type Ring = ReturnType<typeof createRings>[number]

type Work = {
  readonly id: string
  /** The mapping. Undefined for a job without a flow. */
  readonly ring: Ring | undefined
  readonly key: string
  /** The name of the mapping and the key. */
  readonly name: string
  readonly lane: string | undefined
  readonly labels: readonly string[]
  /** The place of the job's delivery in the order of arrival. */
  readonly place: number
  readonly createdAt: number
  expiresAt: number | undefined
  /** `new`: no claim has seen the job yet. */
  state: 'new' | 'queued' | 'running' | 'ended'
  /** The outcome of an ended job. The model learns from the store which jobs a rate limit ended. */
  end: { state: JobState; by?: string | undefined } | undefined
  attempts: number
  runAt: number
  isQueuedAgain: boolean
  /** The end of the budget period for which the job waits. */
  budgetUntil: number | undefined
  hasStep: boolean
  isCounted: boolean
  fence: number
  until: number
  mustEnd: Work['end']
  /** The ids of the jobs whose messages this job reads. */
  gathered: readonly string[]
}

/** The quiet period of a key: its start, its end, and whether it is over. */
type Wait = { firstAt: number; dueAt: number; isOver: boolean }
type Held = { readonly job: ClaimedJob; readonly work: Work }
type Cancel = { readonly ring: string; readonly key: string; readonly place: number }

function check(isTrue: boolean, describe: () => string): void {
  if (!isTrue) throw new Error(describe())
}

function checkMost(used: number, most: number | undefined, describe: () => string): void {
  check(used <= (most ?? Infinity), () => `${describe()}: ${used} of ${most}`)
}

export type Walk = {
  readonly stores: readonly [Store, Store, Store]
  readonly clock: Moved
  readonly seed: number
  readonly steps: number
}

/** How often each kind of event happened in a walk. `fullLimits`, `fullMappings`: only a `total` kept a turn from starting. */
const nothingSeen = {
  starts: 0,
  kills: 0,
  stale: 0,
  superseded: 0,
  cancelled: 0,
  expired: 0,
  waits: 0,
  gathered: 0,
  fullLimits: 0,
  fullMappings: 0,
}
export type Seen = typeof nothingSeen

export async function walkFlows({ stores, clock, seed, steps }: Walk): Promise<Seen> {
  const random = createRandom(seed)
  const drawBelow = (count: number) => Math.floor(random() * count)
  const pick = <Item>(items: readonly [Item, ...Item[]]): Item => items[drawBelow(items.length)] ?? items[0]
  const pickAny = <Item>(items: readonly Item[]): Item | undefined => items[drawBelow(items.length)]
  const rings = createRings(pick)
  const seen = { ...nothingSeen }

  let count = 0
  const works = new Map<string, Work>()
  let unfinished: Work[] = []
  let expiring: Work[] = []
  let cancels: Cancel[] = []
  const waits = new Map<string, Wait>()
  const holds = new Map<string, number | undefined>()
  const starts: { name: string; at: number }[] = []
  let held: Held[] = []
  let stale: Held[] = []
  const reserved = new Map<string, { fence: number; startsAt: number; most: Spending }>()
  const accounts = new Map<number, { spent: Spending; raised: Spending }>()
  const passed = new Map<string, number>()
  let place = 0

  const jobsOfKey = (work: Work) => unfinished.filter((other) => other.name === work.name)
  const sortByArrival = (given: readonly Work[]) => given.toSorted((one, other) => one.place - other.place)
  const listRunning = () => unfinished.filter(({ state }) => state === 'running')
  const countRunning = (test: (work: Work) => boolean) =>
    listRunning().filter((work) => work.ring !== undefined && test(work)).length
  const usesLimit = ({ ring }: Work, name: string) => ring?.settings.limits.includes(name) === true
  const countStarts = (name: string, withinMs: number) =>
    starts.filter((start) => start.name === name && start.at > clock() - withinMs).length
  const isUntouched = ({ attempts, hasStep }: Work) => attempts === 0 && !hasStep

  function endJob(work: Work, state: JobState, by?: string): void {
    work.state = 'ended'
    work.end = { state, by }
    unfinished = unfinished.filter((other) => other !== work)
    if (state === 'superseded' || state === 'cancelled' || state === 'expired') seen[state] += 1
  }

  function endEarly(work: Work, state: JobState, by?: string): void {
    if (work.state === 'running') work.mustEnd ??= { state, by }
    else endJob(work, state, by)
  }

  function endAsAsked(work: Work): void {
    if (work.mustEnd !== undefined) endJob(work, work.mustEnd.state, work.mustEnd.by)
  }

  /** Queues a job again. Its key continues when this job is due, and the later jobs of the key no longer wait for a quiet period. */
  function queueAgain(work: Work, runAt: number): void {
    Object.assign(work, { state: 'queued', runAt, isQueuedAgain: true, until: 0 })
    const wait = waits.get(work.name)
    if (wait !== undefined) wait.isOver = true
  }

  // ---- the work of a claim before it starts jobs

  function loseLeases(): void {
    for (const work of listRunning()) {
      if (work.until > clock()) continue
      if (work.mustEnd !== undefined) {
        endAsAsked(work)
        continue
      }
      work.attempts += 1
      queueAgain(work, clock())
    }
  }

  function sortNewJobs(): void {
    const fresh = unfinished.filter(({ state, ring }) => state === 'new' && ring !== undefined)
    for (const name of new Set(fresh.map(({ name }) => name)))
      sortKey(sortByArrival(fresh.filter((work) => work.name === name)))
  }

  function sortKey(group: readonly Work[]): void {
    const newest = group.at(-1)
    if (newest?.ring === undefined) return
    const { onNew, maxQueued = Infinity } = newest.ring.settings
    const older = jobsOfKey(newest).filter(({ state }) => state === 'queued' || state === 'running')
    const queued = sortByArrival(older.filter(({ state }) => state === 'queued'))
    let kept: readonly Work[] = group
    if (onNew === 'replace') {
      for (const work of group.slice(0, -1)) endJob(work, 'superseded', newest.id)
      for (const work of older) if (work.place < newest.place) endEarly(work, 'superseded', newest.id)
      kept = [newest]
    } else if (onNew === 'skip') {
      kept = older.length > 0 ? [] : group.slice(0, 1)
      for (const work of group.slice(kept.length)) endJob(work, 'skipped')
    }
    for (const work of kept) work.state = 'queued'
    if (kept[0] !== undefined) updateQuietPeriod(kept[0], group, newest, queued[0])
    const all = jobsOfKey(newest).filter(({ state }) => state === 'queued')
    for (const work of sortByArrival(all).slice(0, -maxQueued)) endJob(work, 'dropped')
  }

  /** Begins or extends the quiet period of a key that got new jobs. If the oldest job is a retry, it waits for its own time instead. */
  function updateQuietPeriod(first: Work, group: readonly Work[], newest: Work, head: Work | undefined): void {
    const { delayMs, maxDelayMs, onNew } = newest.ring?.settings ?? ({} as FlowSettings)
    const known = waits.get(newest.name)
    const isRetry = head !== undefined && head.isQueuedAgain && onNew !== 'replace'
    const isNew = head !== undefined && !head.isQueuedAgain
    if (isRetry || (isNew && known?.isOver === true)) return
    const firstAt = isNew && known !== undefined ? known.firstAt : first.createdAt
    let dueAt = isNew && known !== undefined ? known.dueAt : Infinity
    // a request that arrived after the end of the quiet period does not begin a new one
    for (const { createdAt } of group)
      if (createdAt < dueAt) dueAt = Math.min(createdAt + delayMs, firstAt + maxDelayMs)
    waits.set(newest.name, { firstAt, dueAt, isOver: dueAt <= clock() })
  }

  function cancelBefore(first: number): void {
    for (const cancel of cancels.filter((each) => each.place < first)) {
      const those = unfinished.filter(({ ring, key }) => ring?.name === cancel.ring && key === cancel.key)
      for (const work of those) if (work.place < cancel.place) endEarly(work, 'cancelled')
    }
    cancels = cancels.filter((each) => each.place >= first)
  }

  function prepareStarts(): void {
    for (const [label, until] of holds) if (until !== undefined && until <= clock()) holds.delete(label)
    loseLeases()
    // a cancel that arrived before all new jobs takes effect before these jobs replace others
    const fresh = unfinished.filter(({ state, ring }) => state === 'new' && ring !== undefined)
    const first = Math.min(...fresh.map((work) => work.place))
    cancelBefore(first)
    sortNewJobs()
    cancelBefore(Infinity)
    for (const work of expiring) {
      if (work.expiresAt === undefined || work.expiresAt > clock()) continue
      work.expiresAt = undefined
      if (work.state === 'queued' && isUntouched(work)) endJob(work, 'expired')
    }
    expiring = expiring.filter(({ expiresAt }) => expiresAt !== undefined)
    for (const each of waits.values()) if (each.dueAt <= clock()) each.isOver = true
  }

  // ---- which jobs may start

  const isHeld = ({ labels, ring }: Work) =>
    [...labels, ...(ring?.settings.limits.map((name) => `limit:${name}`) ?? []), 'all'].some((label) =>
      holds.has(label),
    )

  /** The next job of the key of `work`. */
  function findHead(work: Work): Work | undefined {
    const queued = jobsOfKey(work).filter(({ state }) => state === 'queued')
    const [oldest] = sortByArrival(queued)
    if (oldest?.ring?.settings.onNew !== 'gather' || !isUntouched(oldest) || oldest.runAt > clock()) return oldest
    return sortByArrival(queued.filter(isUntouched)).at(-1)
  }

  const hasRoomInLimit = (name: keyof typeof limits, work: Work, total: number) => {
    const limit: SharedLimits[string] = limits[name]
    const used = countRunning((other) => usesLimit(other, name))
    const ofThisKey = countRunning((other) => usesLimit(other, name) && other.key === work.key)
    if (used >= total || ofThisKey >= (limit.perKey ?? Infinity)) return false
    return limit.starts === undefined || hasStart(name, limit.starts)
  }
  const hasStart = (name: string, given: { limit: number; period: number; burst?: number | undefined }) => {
    const { limit, period, burst = limit } = given
    return countStarts(name, period) < limit && countStarts(name, Math.floor((period * burst) / limit)) < burst
  }

  const isLaneBusy = ({ lane }: Work) =>
    lane !== undefined && unfinished.some((other) => other.lane === lane && (other.state === 'running' || !other.ring))

  const isDue = (work: Work) =>
    (work.budgetUntil === undefined ? work.runAt : work.budgetUntil) <= clock() && waits.get(work.name)?.isOver === true

  /** Whether a job can start at once, as far as the model knows. */
  const canStart = (work: Work) => canStartIgnoring(undefined, work)

  /** `ignored`: a `total` that is not checked: `mapping`, or the name of a shared limit. */
  function canStartIgnoring(ignored: string | undefined, work: Work): boolean {
    const { ring } = work
    if (ring === undefined || work.state !== 'queued' || findHead(work) !== work || !isDue(work) || isHeld(work))
      return false
    const { perKey, total = Infinity, limits: names } = ring.settings
    if (countRunning((other) => other.name === work.name) >= perKey) return false
    if (ignored !== 'mapping' && countRunning((other) => other.ring === ring) >= total) return false
    if (isLaneBusy(work)) return false
    return names.every((name) => {
      const known = name as keyof typeof limits // as: the mappings name no other limits
      return hasRoomInLimit(known, work, name === ignored ? Infinity : limits[known].total)
    })
  }

  // ---- the jobs that were started

  async function checkStart(job: ClaimedJob): Promise<Work> {
    const work = works.get(job.id)
    if (work === undefined) throw new Error('a job that nobody stored')
    const describeWork = () => `${work.name} ${JSON.stringify(work)}`
    check(work.state === 'queued', () => `starts once: ${describeWork()}`)
    check(!isHeld(work), () => `a paused job stays paused: ${describeWork()}`)
    check(job.attempts === work.attempts && job.hasFlow === (work.ring !== undefined), describeWork)
    check(work.runAt <= clock() || work.budgetUntil !== undefined, () => `not before its time: ${describeWork()}`)
    if (work.ring !== undefined) await checkFlowStart(work, work.ring, describeWork)
    Object.assign(work, { state: 'running', fence: job.fence, until: clock() + leaseMs, budgetUntil: undefined })
    seen.starts += 1
    return work
  }

  async function checkFlowStart(work: Work, { name, settings }: Ring, about: () => string): Promise<void> {
    const { rate, onNew, limits: names } = settings
    const older = jobsOfKey(work).filter(({ state, place: other }) => state === 'queued' && other < work.place)
    if (onNew === 'gather') gather(work, older)
    // this claim may have ended older jobs under a rate limit
    else for (const other of older) await resolveSkipped(other, () => `keeps the order of its key: ${about()}`)
    check(waits.get(work.name)?.isOver === true, () => `waits for its quiet period: ${about()}`)
    if (rate !== undefined && !work.isCounted) {
      work.isCounted = true
      starts.push({ name: `rate ${name}`, at: clock() })
      checkMost(countStarts(`rate ${name}`, rate.periodMs), rate.limit, () => `rateLimit: ${about()}`)
    }
    for (const limit of names) starts.push({ name: limit, at: clock() })
  }

  function gather(work: Work, older: readonly Work[]): void {
    if (!isUntouched(work)) return
    for (const other of older.filter(isUntouched)) {
      work.gathered = [...work.gathered, ...other.gathered, other.id]
      for (const id of other.gathered) Object.assign(works.get(id)?.end ?? {}, { by: work.id })
      other.gathered = []
      endJob(other, 'superseded', work.id)
      seen.gathered += 1
    }
  }

  /** Asks the store whether the job has ended: a rate limit ends jobs in the order of claims, which the model does not know. */
  async function resolveSkipped(work: Work, why: () => string): Promise<void> {
    check(isRateFull(work), why)
    const job = await stores[0].job(work.id)
    check(job?.state === 'skipped' && job.lastError?.includes('rateLimit') === true, why)
    endJob(work, 'skipped')
  }

  const isRateFull = ({ ring, isCounted }: Work) => {
    const { rate } = ring?.settings ?? {}
    return rate !== undefined && !isCounted && countStarts(`rate ${ring?.name}`, rate.periodMs) >= rate.limit
  }

  async function resolveRated(): Promise<void> {
    for (const work of unfinished) {
      if (work.state !== 'queued' || !isRateFull(work)) continue
      if ((await stores[0].job(work.id))?.state === 'skipped') await resolveSkipped(work, () => `rate: ${work.name}`)
    }
  }

  function checkLimits(): void {
    for (const ring of rings) {
      const { total = Infinity, perKey } = ring.settings
      const ofRing = listRunning().filter((work) => work.ring === ring)
      checkMost(ofRing.length, total, () => `total of ${ring.name}`)
      if (ofRing.length === total && unfinished.some((work) => work.ring === ring && canStartIgnoring('mapping', work)))
        seen.fullMappings += 1
      for (const key of keys)
        checkMost(ofRing.filter((work) => work.key === key).length, perKey, () => `perKey of ${ring.name}/${key}`)
    }
    for (const [name, limit] of Object.entries(limits as SharedLimits)) {
      const ofLimit = listRunning().filter((work) => usesLimit(work, name))
      checkMost(ofLimit.length, limit.total, () => `total of ${name}`)
      if (
        ofLimit.length === limit.total &&
        unfinished.some((work) => usesLimit(work, name) && canStartIgnoring(name, work))
      )
        seen.fullLimits += 1
      for (const key of keys)
        checkMost(ofLimit.filter((work) => work.key === key).length, limit.perKey, () => `perKey of ${name}/${key}`)
      if (limit.starts === undefined) continue
      const { limit: most, period, burst = most } = limit.starts
      checkMost(countStarts(name, period), most, () => `starts of ${name}`)
      checkMost(countStarts(name, Math.floor((period * burst) / most)), burst, () => `burst of ${name}`)
    }
    const lanes = listRunning().flatMap(({ lane }) => lane ?? [])
    checkMost(lanes.length, new Set(lanes).size, () => 'a session has one turn at a time')
  }

  /**
   * Checks that no key starves: counts the turns of others, with the same head start or a shorter one, that started while a key could have
   * started.
   */
  function checkFairness(started: readonly Work[]): void {
    const able = new Map(unfinished.filter(canStart).map((work) => [work.name, work]))
    for (const name of passed.keys()) if (!able.has(name)) passed.delete(name)
    for (const work of started) passed.delete(work.name)
    for (const [name, work] of able) {
      const ownMs = work.ring?.settings.headStartMs ?? 0
      const others = started.filter(({ ring }) => (ring?.settings.headStartMs ?? 0) <= ownMs)
      passed.set(name, (passed.get(name) ?? 0) + others.length)
      checkMost(passed.get(name) ?? 0, 4 * rings.length * keys.length, () => `${name} starves: turns of others`)
    }
  }

  // ---- the calls of a walk

  async function accept(): Promise<void> {
    if (unfinished.length >= maxUnfinished) return
    const ring = drawBelow(10) === 0 ? undefined : pickAny(rings)
    const key = pick(keys)
    const session = drawBelow(40) === 0 ? pick(sharedSessions) : ring && `${ring.name} ${key}`
    const lane = session && `main/${session}`
    const labels = [
      ...(lane === undefined ? [] : [`session:${lane}`]),
      `mapping:${ring?.name ?? 'plain'}`,
      'agent:main',
    ]
    const flow = ring && { ring: ring.name, key, expiresMs: ring.expiresMs, settings: ring.settings }
    const job = newJob({ lane, labels, flow })
    await pick(stores).append(newDelivery({ at: clock(), jobs: [job] }))
    place += 1
    const createdAt = clock()
    const expiresAt = ring?.expiresMs === undefined ? undefined : createdAt + ring.expiresMs
    const fresh = {
      state: ring === undefined ? 'queued' : 'new',
      end: undefined,
      attempts: 0,
      runAt: createdAt,
      isQueuedAgain: false,
      budgetUntil: undefined,
    } as const
    const rest = { hasStep: false, isCounted: false, fence: 0, until: 0, mustEnd: undefined, gathered: [] }
    const work: Work = {
      id: job.id,
      ring,
      key,
      name: `${ring?.name}/${key}`,
      lane,
      labels,
      place,
      createdAt,
      expiresAt,
      ...fresh,
      ...rest,
    }
    works.set(job.id, work)
    unfinished.push(work)
    if (expiresAt !== undefined) expiring.push(work)
  }

  async function claim(limit = drawBelow(4)): Promise<number> {
    const jobs = await pick(stores).claim({ limit, leaseMs, limits })
    prepareStarts()
    expect(jobs.length).toBeLessThanOrEqual(limit)
    const started: Work[] = []
    for (const job of jobs) {
      const work = await checkStart(job)
      started.push(work)
      held.push({ job, work })
    }
    await resolveRated()
    checkLimits()
    if (started.length > 0) checkFairness(started)
    for (const { job, work } of held.slice(held.length - jobs.length)) {
      if ((work.ring?.name === 'costly' || work.ring?.name === 'queue') && drawBelow(8) > 0)
        await reserve({ job, work })
    }
    return jobs.length
  }

  const isMine = ({ job, work }: Held) => work.state === 'running' && work.fence === job.fence

  async function reserve(mine: Held): Promise<void> {
    const { job, work } = mine
    const startsAt = clock() - (clock() % periodMs)
    const endsAt = startsAt + periodMs
    const most: Spending = { nanos: 0, tokens: pick([50, 100, 300]), turns: 1 }
    const account = readAccount(startsAt)
    const inUse = sumReserved(startsAt, work.id)
    const hasRoomFor = (name: 'turns' | 'tokens') =>
      account.spent[name] + inUse[name] + most[name] <= budget.limits[name] + account.raised[name]
    const hasRoom = hasRoomFor('turns') && hasRoomFor('tokens')
    const answer = await pick(stores).reserve(job, [{ ...budget, startsAt, endsAt, most }])
    if (!isMine(mine)) return void expect(answer.kind).toBe('lost')
    expect(answer.kind, `the budget has ${JSON.stringify([account, inUse])} for ${most.tokens}`).toBe(
      hasRoom ? 'reserved' : 'waits',
    )
    if (hasRoom) return void reserved.set(work.id, { fence: job.fence, startsAt, most })
    seen.waits += 1
    held = held.filter((each) => each !== mine)
    if (work.mustEnd !== undefined) return endAsAsked(work)
    queueAgain(work, clock())
    work.runAt = Infinity
    work.budgetUntil = endsAt
  }

  const add = (one: Spending, other: Spending): Spending => ({
    nanos: one.nanos + other.nanos,
    tokens: one.tokens + other.tokens,
    turns: one.turns + other.turns,
  })
  const readAccount = (startsAt: number) => accounts.get(startsAt) ?? { spent: noSpending, raised: noSpending }
  /** The sum of all reservations of jobs whose leases are still valid. */
  const sumReserved = (startsAt: number, besides?: string) =>
    [...reserved].reduce((sum, [id, { fence, most, ...each }]) => {
      const work = works.get(id)
      const lasts = work?.state === 'running' && work.fence === fence && work.until > clock()
      return lasts && each.startsAt === startsAt && id !== besides ? add(sum, most) : sum
    }, noSpending)

  const wakeBudget = () => {
    for (const work of unfinished)
      if (work.budgetUntil !== undefined) Object.assign(work, { budgetUntil: undefined, runAt: clock() })
  }

  /**
   * Without a flow, a job whose lease has ended still belongs to its gateway in Postgres until another gateway claims it. While the job is
   * paused, none can. In SQLite, the next claim of any job queues it.
   */
  async function restoreOwner(work: Work): Promise<void> {
    if (work.ring !== undefined || work.state !== 'queued' || work.fence === 0) return
    if ((await stores[0].job(work.id))?.state !== 'running') return
    Object.assign(work, { state: 'running', attempts: work.attempts - 1, until: clock() })
  }

  async function report(mine = pickAny(held)): Promise<void> {
    if (mine === undefined) return
    const { job, work } = mine
    await restoreOwner(work)
    const valid = isMine(mine)
    const what = chooseReport()
    const { outcome } = what
    const settled = settle(mine, outcome)
    if (outcome !== undefined || !valid) held = held.filter((each) => each !== mine)
    const answer = await pick(stores).report(job, { ...what, leaseMs, ...settled })
    if (!valid) seen.stale += 1
    expect(answer, `only the owner reports: ${JSON.stringify(work)}`).toBe(valid && work.mustEnd === undefined)
    if (!valid) return
    if (work.mustEnd !== undefined) return outcome === undefined ? undefined : endAsAsked(work)
    if (what.steps !== undefined) work.hasStep = true
    if (outcome === undefined) work.until = clock() + leaseMs
    else if (outcome.kind === 'done' || outcome.kind === 'dead') endJob(work, outcome.kind)
    else {
      if (outcome.kind === 'retry' && outcome.counted !== false) work.attempts += 1
      queueAgain(work, clock() + (outcome.kind === 'retry' ? outcome.afterMs : 0))
    }
  }

  function chooseReport(): JobReport {
    const steps = drawBelow(3) === 0 ? { steps: [{ name: 'run', state: 'done', at: clock() }] as const } : {}
    const dice = drawBelow(20)
    if (dice < 13) return { ...steps, outcome: { kind: 'done' } }
    if (dice < 15)
      return { ...steps, outcome: { kind: 'retry', afterMs: drawBelow(20_000), error: 'busy', counted: dice < 14 } }
    if (dice < 17) return { ...steps, outcome: { kind: 'release' } }
    return dice < 18 ? { ...steps, outcome: { kind: 'dead', error: 'broken' } } : steps
  }

  function settle({ job, work }: Held, outcome: JobReport['outcome']): Pick<JobReport, 'settled'> {
    const mine = reserved.get(work.id)
    if (mine === undefined || (outcome === undefined && drawBelow(2) === 0)) return {}
    const used = { nanos: 0, tokens: drawBelow(mine.most.tokens + 1), turns: 1 }
    if (isMine({ job, work }) && mine.fence === job.fence) {
      const account = readAccount(mine.startsAt)
      accounts.set(mine.startsAt, { ...account, spent: add(account.spent, used) })
      reserved.delete(work.id)
      // the jobs that were woken may start now, but need not
      return { settled: [{ name: budget.name, startsAt: mine.startsAt, used }] }
    }
    return {}
  }

  /** A gateway dies with about a third of the running jobs. Some of its reports arrive long afterwards. */
  function kill(): void {
    const lost = held.filter(() => drawBelow(3) === 0)
    held = held.filter((each) => !lost.includes(each))
    stale = [...stale, ...lost].slice(-10)
    seen.kills += 1
  }

  async function reportStale(): Promise<void> {
    const mine = pickAny(stale.filter((each) => !isMine(each)))
    if (mine === undefined) return
    stale = stale.filter((each) => each !== mine)
    if (mine.work.state === 'ended' && mine.work.fence === mine.job.fence) return
    held.push(mine)
    await report(mine)
    held = held.filter((each) => each !== mine)
  }

  async function extend(): Promise<void> {
    const mine = pickAny(held)
    if (mine === undefined) return
    await restoreOwner(mine.work)
    const ids = await pick(stores).extend([mine.job], leaseMs)
    expect(ids).toEqual(isMine(mine) ? [mine.job.id] : [])
    if (isMine(mine)) mine.work.until = clock() + leaseMs
  }

  async function hold(): Promise<void> {
    const label = pick([
      'all',
      'agent:main',
      'limit:llm',
      'session:main/s1',
      'session:main/gather a',
      `mapping:${pickAny(rings)?.name}`,
    ])
    const isOfAll = label === 'all' || label === 'agent:main'
    const forMs = isOfAll ? 1_000 + drawBelow(5_000) : drawBelow(2) === 0 ? undefined : 1_000 + drawBelow(60_000)
    await pick(stores).hold({ label, kind: 'pause', reason: 'x', author: undefined, forMs })
    holds.set(label, forMs === undefined ? undefined : clock() + forMs)
  }

  async function unhold(): Promise<void> {
    const label = pickAny([...holds.keys()])
    if (label === undefined) return
    await pick(stores).unhold({ label, kind: 'pause' })
    holds.delete(label)
  }

  async function cancelKey(): Promise<void> {
    const ring = pickAny(rings)?.name ?? ''
    const key = pick(keys)
    const cancel = { ring, key, reason: 'It was closed.' }
    await pick(stores).append(newDelivery({ id: newId(), at: clock(), state: 'skipped', jobs: [], cancel }))
    place += 1
    cancels.push({ ring, key, place })
  }

  async function endAnyJob(): Promise<void> {
    await resolveRated()
    const work = pickAny(unfinished)
    if (work === undefined) return
    await restoreOwner(work)
    const answer = await pick(stores).endJob(work.id, { state: 'cancelled', reason: 'An operator ended it.' })
    expect(answer).toBe(work.state === 'running' ? 'ending' : 'ended')
    endEarly(work, 'cancelled')
  }

  async function requeue(): Promise<void> {
    const work = pickAny([...works.values()].filter((each) => each.end?.state === 'dead'))
    if (work === undefined) return
    expect(await pick(stores).requeue(work.id)).toBe(true)
    const state = work.ring === undefined ? 'queued' : 'new'
    Object.assign(work, { state, end: undefined, attempts: 0, runAt: clock(), isQueuedAgain: true, fence: 0 })
    unfinished.push(work)
  }

  async function raiseBudget(): Promise<void> {
    const startsAt = clock() - (clock() % periodMs)
    const by = { nanos: 0, tokens: 100, turns: 1 }
    await pick(stores).raiseBudget({ name: budget.name, startsAt }, by)
    const account = readAccount(startsAt)
    accounts.set(startsAt, { ...account, raised: add(account.raised, by) })
    wakeBudget()
  }

  function advance(): void {
    clock.advance(drawBelow(20) === 0 ? drawBelow(90_000) : drawBelow(10) === 0 ? 0 : drawBelow(4_000))
    for (let first = starts[0]; first !== undefined && first.at < clock() - periodMs; first = starts[0]) starts.shift()
  }

  /** Claims until no job starts any more. Then each job that could start has started, and the store must agree with the model. */
  async function claimUntilIdle(): Promise<void> {
    for (let empty = 0; empty < 4;) empty = (await claim(20)) === 0 ? empty + 1 : 0
    await resolveRated()
    for (const work of unfinished) {
      const { rate } = work.ring?.settings ?? {}
      check(!canStart(work) || rate !== undefined, () => `could start: ${work.name} ${JSON.stringify(work)}`)
      // only a sample of the jobs, because a read takes as long as a call; jobs without a flow may still be as their lost owner left them
      if (drawBelow(4) > 0 || work.ring === undefined) continue
      const job = await stores[0].job(work.id)
      expect({ work, state: job?.state, attempts: job?.attempts }).toMatchObject({
        state: work.state,
        attempts: work.attempts,
      })
    }
    const ending = listRunning().filter(({ mustEnd }) => mustEnd !== undefined)
    const endings = await stores[1].jobsToEnd()
    expect(endings.map(({ id }) => id).toSorted()).toEqual(ending.map(({ id }) => id).toSorted())
    await checkBudget()
    await checkNextLook()
  }

  async function checkBudget(): Promise<void> {
    for (const [startsAt, { spent, raised }] of accounts) {
      const [account] = await stores[2].accounts([{ name: budget.name, startsAt }])
      expect(account).toMatchObject({ spent, raised, reserved: sumReserved(startsAt) })
      const used = add(spent, sumReserved(startsAt))
      for (const name of ['turns', 'tokens'] as const)
        expect(used[name], 'never overspent').toBeLessThanOrEqual(budget.limits[name] + raised[name])
    }
  }

  /** The store must not name a later moment than that of the next due job, because a worker sleeps until the named moment. */
  async function checkNextLook(): Promise<void> {
    const heads = unfinished.filter(
      (work) => work.ring !== undefined && work.state === 'queued' && findHead(work) === work,
    )
    const moments = heads.flatMap((work) => {
      if (isHeld(work) || work.budgetUntil !== undefined) return []
      const wait = waits.get(work.name)
      if (work.runAt > clock()) return [work.runAt]
      return wait !== undefined && !wait.isOver && !work.isQueuedAgain ? [wait.dueAt] : []
    })
    if (moments.length === 0) return
    expect(await stores[0].nextDueInMs(), 'the next look').toBeLessThanOrEqual(Math.min(...moments) - clock())
  }

  /** True in every other stretch of calls: turns last long there, so that limits and mappings are full. */
  const isBusy = () => Math.floor(count / 200) % 2 === 1

  async function step(): Promise<void> {
    const dice = drawBelow(1_000)
    if (isBusy() && dice >= 500 && dice < 900 && drawBelow(10) > 0)
      return drawBelow(2) === 0 ? accept() : void (await claim())
    if (dice < 250) return accept()
    if (dice < 500) return void (await claim())
    if (dice < 820) return report()
    if (dice < 900) return advance()
    if (dice < 915) return extend()
    if (dice < 925) return kill()
    if (dice < 935) return reportStale()
    if (dice < 942) return hold()
    if (dice < 954) return unhold()
    if (dice < 964) return cancelKey()
    if (dice < 972) return endAnyJob()
    if (dice < 977) return requeue()
    if (dice < 981) return raiseBudget()
    if (dice < 983) return void (await pick(stores).wakeBudgets(), wakeBudget())
    if (dice < 990) return claimUntilIdle()
    return advance()
  }

  try {
    for (; count < steps; count += 1) await step()
    for (const label of holds.keys()) await stores[0].unhold({ label, kind: 'pause' })
    holds.clear()
    // at the end, each accepted job ends, in as many rounds as the budget and the limits need
    for (let round = 0; unfinished.length > 0 && round < 400; round += 1) {
      clock.advance(periodMs / 4)
      starts.splice(0)
      await claimUntilIdle()
      while (held.length > 0) await report()
    }
    expect(unfinished, 'everything ends').toEqual([])
    for (const work of works.values()) {
      const job = await stores[0].job(work.id)
      expect({ work, state: job?.state, endedBy: job?.endedBy, steps: job?.steps.length }).toMatchObject({
        state: work.end?.state,
        endedBy: work.end?.by,
        steps: work.hasStep ? 1 : 0,
      })
      const read = (await stores[0].gatheredJobs(work.id, 99)).jobs.map(({ id }) => id)
      expect(read.toSorted(), 'the messages of its key').toEqual([...work.gathered].toSorted())
    }
  } catch (error) {
    throw new Error(`Step ${count} of the walk ${seed} failed.`, { cause: error })
  }
  return seen
}
