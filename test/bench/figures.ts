// The figures of the probes, and their goals.
import { type LoadRow, loadRows } from './battery/rows.ts'
import { findQueue, queueKinds } from './queues.ts'

/** One figure that a probe measures. */
export type Figure = {
  readonly key: string
  /** The description of the figure, with its unit. */
  readonly title: string
  /** The highest value that passes. Without a limit, the figure is only shown. A goal of 0 allows no tolerance. */
  readonly most?: number
  /** The lowest value that passes, for a figure that should be high. */
  readonly least?: number
}

/** A measurement in a child process that runs for all rounds. */
export type Probe = {
  readonly name:
    | 'verify'
    | 'micro'
    | 'isolation'
    | 'queue'
    | 'reload'
    | 'runaway'
    | 'postgres'
    | 'cost'
    | 'flow'
    | 'runs'
    | 'growth'
    | LoadRow
  /** True: measured once, because the probe repeats its measurements itself. */
  readonly once?: boolean
  readonly figures: readonly Figure[]
}

export const verifySchemes = ['github', 'slack', 'stripe', 'standard-webhooks'] as const
export const saveStyles = [
  'in place',
  'by rename',
  'in two chunks 15 ms apart',
  'in two chunks 40 ms apart',
  'twice within 15 ms',
  'by delete and re-create',
] as const
export const savesOfStyle = 20
export const reloadsWanted = 2000
export const reloadSeconds = 40
export const runawayTimeoutMs = 200
export const queuedRuns = 1000
export const claimedSessions = 2000
export const backlogJobs = 1_000_000
export const grownDeliveries = 1_000_000
export const grownSessions = 10_000
/** The calls that the views of the page make. */
export const grownCalls = [
  '/api/deliveries?limit=200',
  '/api/events',
  '/api/sessions',
  '/api/sessions/main',
  '/api/attention',
  '/api/hooks',
  '/api/outlets',
  '/api/health',
  '/metrics',
]
export const flowJobs = 100_000
export const flowKeys = 10_000

/**
 * The budget of each stage: its processor time, and the bytes that it allocates. The unit of the time is one JSON.parse of the same body,
 * so that the budget is equal on all machines. `commit` runs in another thread. `hand to the writer` includes both sides of the transfer.
 */
const microBudgets = {
  /** The unit. It measures the machine, not the gateway. */
  parse: undefined,
  admit: { parses: 1, bytes: 2300 },
  read: { parses: 1.6, bytes: 4700 },
  'check and parse': { parses: 2.8, bytes: 7500 },
  'match and render': { parses: 0.9, bytes: 4800 },
  'plan rows': { parses: 1.3, bytes: 4500 },
  'hand to the writer': { parses: 4.6, bytes: 5500 },
  commit: { parses: 10, bytes: 6800 },
  answer: { parses: 9, bytes: 15_500 },
  /** All stages before the answer, with a store that is ready at once, and the work that belongs to no stage, such as log and metrics. */
  'whole pipe': { parses: 17, bytes: 32_000 },
} as const
export type MicroStage = keyof typeof microBudgets

export const costlyWork = ['wake', 'signed', 'run', 'save'] as const
const costTitles: Readonly<Record<(typeof costlyWork)[number], string>> = {
  wake: 'a lone wake of 1 kB',
  signed: 'a signed delivery of 10 kB',
  run: 'a run of two steps with a reply, to its end',
  save: 'a save of a transform, until it is live',
}

export const probes: readonly Probe[] = [
  {
    name: 'cost',
    figures: costlyWork.flatMap((work) => [
      { key: `${work} calls`, title: `${costTitles[work]}: system calls` },
      { key: `${work} commits`, title: `${costTitles[work]}: commits` },
      { key: `${work} pages`, title: `${costTitles[work]}: pages of the WAL` },
      { key: `${work} wal bytes`, title: `${costTitles[work]}: bytes of the WAL` },
      { key: `${work} allocated`, title: `${costTitles[work]}: bytes allocated` },
    ]),
  },
  {
    name: 'micro',
    figures: Object.entries(microBudgets).flatMap(([stage, budget]) => [
      { key: `${stage} micros`, title: `${stage}, µs` },
      ...(budget === undefined
        ? []
        : [
            { key: `${stage} parses`, title: `${stage}, in times of JSON.parse`, most: budget.parses },
            { key: `${stage} bytes`, title: `${stage}, bytes allocated`, most: budget.bytes },
          ]),
    ]),
  },
  {
    name: 'verify',
    figures: verifySchemes.flatMap((scheme) => [
      { key: `${scheme} added`, title: `verify ${scheme} beyond the hash, 1 kB, µs`, most: 5 },
      { key: `${scheme} hash`, title: `the hash alone for ${scheme}, 1 kB, µs` },
    ]),
  },
  {
    name: 'isolation',
    figures: [
      { key: 'bare', title: 'round trip of 1 kB to a thread, one processor, p50, µs' },
      { key: 'inline', title: 'a call of a transform inline, p50, µs' },
      { key: 'worker', title: 'the same in its worker, p50, µs' },
      { key: 'added', title: 'what the worker adds, p50, µs' },
      // the goal is from a measurement of 25 µs / 14.5 µs
      { key: 'ratio', title: 'what the worker adds / the round trip', most: 1.72 },
    ],
  },
  {
    name: 'growth',
    figures: [
      ...grownCalls.map((path) => ({ key: path, title: `${path} with ${grownDeliveries} deliveries, ms`, most: 200 })),
      { key: 'alone', title: 'p99 of 4 connections, ms' },
      { key: 'beside', title: 'the same while all of these calls are made without a pause, ms' },
    ],
  },
  {
    name: 'queue',
    figures: [
      { key: 'ratio', title: `p99 of the intake with ${queuedRuns} runs queued / without`, most: 1.2 },
      { key: 'idle', title: 'p99 of the intake without, ms' },
      { key: 'full', title: `p99 of the intake with ${queuedRuns} runs queued, ms` },
      { key: 'left', title: 'runs that were still queued at the end' },
    ],
  },
  {
    name: 'reload',
    once: true,
    figures: [
      { key: 'p50', title: 'save → served, all styles, p50 ms', most: 50 },
      { key: 'p99', title: 'save → served, all styles, p99 ms', most: 120 },
      { key: 'lost', title: 'saves lost', most: 0 },
      ...saveStyles.flatMap((style) => [
        { key: `${style} p50`, title: `saved ${style}, p50 ms` },
        { key: `${style} p99`, title: `saved ${style}, p99 ms` },
      ]),
      { key: 'packages p50', title: 'saved with date-fns and lodash-es imported, p50 ms', most: 150 },
      { key: 'packages p99', title: 'saved with date-fns and lodash-es imported, p99 ms' },
      { key: 'packages first', title: 'the first such save after a start, ms' },
      { key: 'reloads', title: `reloads for the next row (${reloadsWanted}, or what fits into ${reloadSeconds} s)` },
      { key: 'heap', title: 'main heap growth over these reloads, MB', most: 2 },
    ],
  },
  {
    name: 'runaway',
    figures: [
      { key: 'next', title: 'endless loop sent → next call of its module served, ms', most: runawayTimeoutMs + 40 },
      { key: 'worst', title: 'the same, the worst of a round, ms' },
      { key: 'parked', title: 'endless loop sent → it is parked, ms' },
      { key: 'transform', title: 'p99 of another transform during a loop / without', most: 2 },
      { key: 'template', title: 'p99 of a template during a loop / without', most: 2 },
      { key: 'series transform', title: 'p99 of another transform, loop after loop / without' },
      { key: 'series template', title: 'p99 of a template, loop after loop / without' },
    ],
  },
  {
    name: 'flow',
    once: true,
    figures: (['SQLite', 'Postgres'] as const).flatMap((engine) => {
      const name = engine.toLowerCase()
      return [
        { key: `${name} p50`, title: `a claim with ${flowJobs} jobs of ${flowKeys} keys queued, ${engine}, p50 ms` },
        { key: `${name} p99`, title: 'the same, p99 ms', most: engine === 'SQLite' ? 2 : 5 },
        { key: `${name} processor`, title: 'the same, processor time of the gateway, ms' },
        {
          key: `${name} turns`,
          title: `turns until a quiet mapping is served, beside a full one / alone, ${engine}`,
          most: 2,
        },
        { key: `${name} accept`, title: `a batch of runs stored, with a flow / without, ${engine}` },
        { key: `${name} hot`, title: `a batch of runs stored, of one key / without a flow, ${engine}` },
      ]
    }),
  },
  {
    name: 'runs',
    figures: [
      { key: 'sqlite', title: 'runs accepted, performed and recorded a second, SQLite, 64 at a time' },
      { key: 'sqlite processor', title: 'processor time of the gateway for one, ms' },
      { key: 'beside', title: 'requests a second while runs end / while runs wait', least: 0.8 },
      { key: 'beside p99', title: 'the same, p99', most: 1.5 },
      ...[16, 64].flatMap((slots) => [
        { key: `postgres ${slots}`, title: `runs a second, Postgres, ${slots} at a time` },
        { key: `postgres ${slots} processor`, title: 'processor time of the gateway for one, ms' },
      ]),
      ...queueKinds
        .filter((kind) => findQueue(kind) !== undefined)
        .map((kind) => ({ key: kind, title: `jobs added and ended a second, ${kind}, 16 at a time` })),
      ...(findQueue('graphile-worker') === undefined
        ? []
        : [{ key: 'share', title: 'runs on Postgres / jobs of graphile-worker, 16 at a time', least: 0.8 }]),
    ].filter(({ key }) => process.env['HOOKLOOM_TEST_POSTGRES'] !== undefined || !key.startsWith('postgres ')),
  },
  {
    name: 'postgres',
    figures: [
      { key: 'accept', title: 'requests a second, 64 × 1 kB, Postgres / SQLite', least: 0.6 },
      { key: 'perSecond', title: 'requests a second on Postgres, 64 × 1 kB' },
      { key: 'two', title: 'requests a second, two gateways on one Postgres / one' },
      { key: 'claims', title: `runs claimed and reported a second, ${claimedSessions} sessions`, least: 500 },
      { key: 'backlog', title: `deliveries stored a second, with ${backlogJobs} jobs queued / without`, least: 0.8 },
    ],
  },
  ...loadRows,
]
