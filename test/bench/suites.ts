// What is measured, and what must come out.
import type { ServerOptions } from './server.ts'

export type Variant = {
  /** Name in the tables. */
  readonly name: string
  readonly server: Pick<ServerOptions, 'kind' | 'delayMs'>
  readonly path: string
  /** Jobs run beside, and are counted. Its server is a new one in each round, and gone after it with its backlog. */
  readonly runsJobs?: boolean
}

export type Load = { readonly connections: number; readonly bytes: number }

export type Suite = {
  readonly name: 'accept' | 'slow' | 'agent'
  readonly variants: readonly Variant[]
  readonly loads: readonly Load[]
}

const path = '/hooks/bench'
export const warmUpPath = path
const gateway = (name: string, delayMs = 0): Variant => ({ name, server: { kind: 'sqlite', delayMs }, path })
const other = (kind: 'memory' | 'insert' | 'koa' | 'http', name: string, delayMs = 0): Variant => ({
  name,
  server: { kind, delayMs },
  path,
})

const durable = gateway('gateway')
const memory = other('memory', 'gateway, memory store')
const insert = other('insert', 'koa, insert each')
const koa = other('koa', 'koa')
const http = other('http', 'node:http')
const fast = gateway('gateway, 0 ms more')
const slow2 = gateway('gateway, 2 ms more', 2)
const slow5 = gateway('gateway, 5 ms more', 5)
const insert2 = other('insert', 'koa, insert each, 2 ms more', 2)
const wakes = gateway('gateway, wakes')
const agents: Variant = { ...gateway('gateway, agents'), path: '/hooks/bench-agent', runsJobs: true }

const one: Load = { connections: 1, bytes: 1_000 }
const few: Load = { connections: 16, bytes: 1_000 }
const many: Load = { connections: 64, bytes: 1_000 }
const large: Load = { connections: 64, bytes: 10_000 }
const huge: Load = { connections: 64, bytes: 100_000 }

export const suites: readonly Suite[] = [
  { name: 'accept', variants: [durable, memory, insert, koa, http], loads: [one, few, many, large, huge] },
  { name: 'slow', variants: [fast, slow2, slow5, insert2], loads: [many] },
  { name: 'agent', variants: [wakes, agents], loads: [many] },
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
   * - `lag`: by how many commits of the slower disk the p99 is longer. A queue that grows behind the disk costs dozens.
   */
  readonly as: 'throughput' | 'lag'
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

export const comparisons: readonly Comparison[] = [
  ratio(durable, memory, many, 0.7),
  ratio(durable, memory, few, 0.55),
  ratio(durable, memory, large, 0.55),
  ratio(durable, memory, huge),
  ratio(durable, memory, one),
  ratio(durable, insert, many, 4),
  ratio(durable, koa, many),
  ratio(durable, http, many),
  ratio(memory, koa, many),
  { ...ratio(slow2, insert2, many), suite: 'slow' },
  { ...ratio(slow2, fast, many, 3), suite: 'slow', as: 'lag', title: 'p99 with 2 ms more, in commits' },
  { ...ratio(slow5, fast, many, 3), suite: 'slow', as: 'lag', title: 'p99 with 5 ms more, in commits' },
  { ...ratio(agents, wakes, many), suite: 'agent' },
]

/** Machines are noisy: the bench fails at this share of a goal. */
export const floorShare = 0.75
