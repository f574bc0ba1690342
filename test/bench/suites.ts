// What is measured, and what must come out.
import type { StandIn } from './gateway.ts'
import type { ServerOptions } from './server.ts'

export type Variant = {
  /** Name in the tables. */
  readonly name: string
  readonly server: Pick<ServerOptions, 'kind' | 'delayMs' | 'transforms' | 'runtime'>
  readonly path: string
  /** Jobs run beside, and are counted. Its server is a new one in each round, and gone after it with its backlog. */
  readonly runsJobs?: boolean
}

export type Load = { readonly connections: number; readonly bytes: number }

export type Suite = {
  readonly name: 'accept' | 'slow' | 'agent' | 'isolation'
  readonly variants: readonly Variant[]
  readonly loads: readonly Load[]
}

const path = '/hooks/bench'
export const warmUpPath = path
const gateway = (name: string, delayMs = 0): Variant => ({ name, server: { kind: 'sqlite', delayMs }, path })
const other = (kind: 'single' | 'memory' | 'insert' | 'koa' | 'http', name: string, delayMs = 0): Variant => ({
  name,
  server: { kind, delayMs },
  path,
})

const durable = gateway('gateway')
/** Commits on the main thread, without a writer thread: it shows what the disk and the thread cost, not the least a store could. */
const memory = other('memory', 'gateway, SQLite in memory, no disk')
const insert = other('insert', 'koa, insert each')
const single = other('single', 'gateway, one commit a request')
const single2 = other('single', 'gateway, one commit a request, 2 ms more', 2)
const koa = other('koa', 'koa')
const http = other('http', 'node:http')
const fast = gateway('gateway, 0 ms more')
const slow2 = gateway('gateway, 2 ms more', 2)
const slow5 = gateway('gateway, 5 ms more', 5)
const insert2 = other('insert', 'koa, insert each, 2 ms more', 2)
const wakes = gateway('gateway, wakes')
const agents: Variant = { ...gateway('gateway, agents'), path: '/hooks/bench-agent', runsJobs: true }

/** The template of the benched hook as code. */
const reshape = `export default ({ payload: { action, issue, sender } }) => ({
  text: \`\${action} #\${issue.number} \${issue.title} by \${sender.login}: \${issue.html_url}\`,
})
`
const transforming = (kind: 'sqlite' | 'memory', name: string, runtime?: StandIn): Variant => ({
  name,
  server: {
    kind,
    delayMs: 0,
    ...(runtime && { runtime }),
    transforms: { files: { 'reshape.ts': reshape }, limits: {} },
  },
  path: '/hooks/reshape',
})
const isolated = transforming('sqlite', 'transform in its worker')
const inline = transforming('sqlite', 'transform inline', 'inline')
const isolatedMemory = transforming('memory', 'transform in its worker, SQLite in memory')
const inlineMemory = transforming('memory', 'transform inline, SQLite in memory', 'inline')
const tripMemory = transforming('memory', 'transform inline after a bare trip to a thread, SQLite in memory', 'trip')

const one: Load = { connections: 1, bytes: 1_000 }
const few: Load = { connections: 16, bytes: 1_000 }
const many: Load = { connections: 64, bytes: 1_000 }
const large: Load = { connections: 64, bytes: 10_000 }
const huge: Load = { connections: 64, bytes: 100_000 }

export const suites: readonly Suite[] = [
  { name: 'accept', variants: [durable, memory, single, insert, koa, http], loads: [one, few, many, large, huge] },
  { name: 'slow', variants: [fast, slow2, slow5, single2, insert2], loads: [many] },
  { name: 'agent', variants: [wakes, agents], loads: [many] },
  {
    name: 'isolation',
    variants: [isolated, inline, isolatedMemory, inlineMemory, tripMemory],
    loads: [one, many, huge],
  },
]

/** A comparison of two variants under one load, in the same round. */
export type Comparison = {
  readonly title: string
  readonly suite: Suite['name']
  readonly load: Load
  readonly of: Variant
  readonly to: Variant
  /**
   * - `throughput`: how many times as many requests a second.
   * - `added`: microseconds by which the p50 is longer.
   * - `lag`: by how many commits of the slower disk the p99 is longer. A queue that grows behind the disk costs dozens.
   */
  readonly as: 'throughput' | 'lag' | 'added'
  /** Missing: it is shown, and nothing is asked of it. */
  readonly goal?: number
}

const ratio = (of: Variant, to: Variant, load: Load, goal?: number): Comparison => ({
  title: `${of.name} / ${to.name}`,
  suite: 'accept',
  load,
  of,
  to,
  as: 'throughput',
  ...(goal === undefined ? {} : { goal }),
})

const added = (of: Variant, to: Variant) => ({ ...ratio(of, to, one), suite: 'isolation', as: 'added' }) as const

export const comparisons: readonly Comparison[] = [
  ratio(durable, memory, many, 0.7),
  ratio(durable, memory, few, 0.55),
  ratio(durable, memory, large, 0.55),
  ratio(durable, memory, huge),
  ratio(durable, memory, one),
  ratio(durable, single, many),
  // nothing that koa serves can be more times as fast as koa itself: on a fast disk the processor limits both, see `slow`
  ratio(durable, insert, many),
  ratio(koa, insert, many),
  ratio(durable, koa, many),
  ratio(durable, http, many),
  ratio(memory, koa, many),
  { ...ratio(slow2, single2, many, 4), suite: 'slow' },
  { ...ratio(slow2, insert2, many, 4), suite: 'slow' },
  { ...ratio(slow2, fast, many, 3), suite: 'slow', as: 'lag', title: 'p99 with 2 ms more, in commits' },
  { ...ratio(slow5, fast, many, 3), suite: 'slow', as: 'lag', title: 'p99 with 5 ms more, in commits' },
  { ...ratio(agents, wakes, many), suite: 'agent' },
  { ...ratio(isolated, inline, many, 0.85), suite: 'isolation' },
  { ...ratio(isolated, inline, huge, 0.95), suite: 'isolation' },
  { ...ratio(isolatedMemory, inlineMemory, many), suite: 'isolation' },
  { ...ratio(isolatedMemory, inlineMemory, huge), suite: 'isolation' },
  { ...added(isolated, inline), title: 'p50 that the worker adds, µs' },
  // without a disk, whose own spread is several times what is looked for; the probe asks what can be asked of it
  { ...added(isolatedMemory, inlineMemory), title: 'p50 that the worker adds, SQLite in memory, µs' },
  { ...added(tripMemory, inlineMemory), title: 'p50 that a bare trip to a thread adds, SQLite in memory, µs' },
]

/** Of one figure that a probe measures. */
export type Figure = {
  readonly key: string
  /** With its unit. */
  readonly title: string
  /** Missing: it is shown, and nothing is asked of it. A goal of 0 has no slack. */
  readonly most?: number
}

/** What is measured in a way of its own, in a child that lives through the rounds. */
export type Probe = {
  readonly name: 'verify' | 'isolation' | 'queue' | 'reload' | 'runaway'
  /** Once, however many rounds there are: it has rounds of its own. */
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

export const probes: readonly Probe[] = [
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
      // as 25 µs are to a round trip of 14.5
      { key: 'ratio', title: 'what the worker adds / the round trip', most: 1.72 },
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
]

/** What runs when nothing is named: about three minutes. */
export const usual = ['accept', 'slow', 'agent'] as const

/** Machines are noisy: the bench fails at this share of a goal. */
export const floorShare = 0.75
