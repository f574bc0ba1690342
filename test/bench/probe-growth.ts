// A store that has grown: how long each list takes, and what requests notice while somebody looks at the page.
import { mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { NewDelivery } from '../../src/store/records.ts'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { createSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { newDelivery, newEvent, newJob, newWake, planned, request } from '../contract/stage.ts'
import { startChild } from './child.ts'
import { grownCalls, grownDeliveries, grownSessions } from './figures.ts'
import type { LoadJob, LoadResult } from './load.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { token } from './run.ts'
import type { ServerOptions, ServerRequest } from './server.ts'
import { computeQuantile } from './statistics.ts'

const operator = 'the token of whom the page belongs to'
const days = 6
const dayMs = 86_400_000
const storedAtOnce = 1_000
const connections = 4
const callsEach = 5

export async function createGrowthProbe({ folder, built, seconds }: ProbeOptions): Promise<RunningProbe> {
  const dir = mkdtempSync(join(folder, 'store-'))
  await fill(join(dir, 'state/hookloom.db'))
  const { child: generator } = await startChild<LoadJob, LoadResult>(join(folder, 'load.mjs'), [])
  const server: ServerOptions = { kind: 'sqlite', delayMs: 0, dir, built, token, operator }
  const { child, first: port } = await startChild<ServerRequest, number>(join(folder, 'server.mjs'), [
    JSON.stringify(server),
  ])
  const adminPort = await child.ask('admin port')
  const call = async (path: string) => {
    const began = performance.now()
    const headers = { authorization: `Bearer ${operator}` }
    const answer = await fetch(`http://127.0.0.1:${adminPort}${path}`, { headers })
    await answer.arrayBuffer()
    if (answer.status !== 200) throw new Error(`${path} is answered ${answer.status}`)
    return performance.now() - began
  }
  const load = () => generator.ask({ port, path: '/hooks/bench', token, connections, bytes: 1_000, seconds })

  return async () => {
    const figures: Record<string, number> = {}
    for (const path of grownCalls) {
      const times: number[] = []
      for (let count = 0; count < callsEach; count += 1) times.push(await call(path))
      figures[path] = computeQuantile(times, 0.5)
    }
    const alone = await load()
    const page = new AbortController()
    const looks = async () => {
      while (!page.signal.aborted) await Promise.all(grownCalls.map(call))
    }
    const looking = looks()
    const beside = await load()
    page.abort()
    await looking
    return { ...figures, alone: alone.p99Ms, beside: beside.p99Ms }
  }
}

async function fill(file: string): Promise<void> {
  mkdirSync(join(file, '..'), { recursive: true })
  const end = Date.now()
  let now = end - days * dayMs
  const store = createSqliteStore({ file, clock: () => Math.floor(now) })
  for (let from = 0; from < grownDeliveries; from += storedAtOnce) {
    const batch = Array.from({ length: storedAtOnce }, (_, index) => {
      now += (days * dayMs) / grownDeliveries
      return store.append(buildDelivery(from + index, Math.floor(now)))
    })
    await Promise.all(batch)
  }
  await store.close()
  const db = openDatabase(file, { readOnly: false, busyMs: 1_000 })
  db.exec(
    `UPDATE jobs SET state = 'dead', last_error = 'The channel answered 503.' WHERE state = 'done' AND seq % 9 = 0`,
  )
  db.close()
}

/** Half of the deliveries are wakes, most of them for one session; of the others, one in ten is skipped. */
function buildDelivery(number: number, at: number): NewDelivery {
  const hook = ['github', 'stripe', 'deploy', 'agent', 'linear'][number % 5] ?? 'github'
  const sessionKey = `hook:${number % grownSessions}`
  const event = newEvent({ text: `The run ${number} is done` })
  const common = { at, hook, source: hook, event: `event${number % 7}` }
  const kind = number % 20
  if (kind < 10) {
    const text = `Order ${number} of Ann`
    const kept = request(JSON.stringify({ action: 'opened', issue: { number, title: text } }))
    const dedupe = { hook, key: `key ${number}`, bodyHash: 'h' }
    return newDelivery({ ...common, dedupe, request: kept, jobs: [newWake(text, kind < 6 ? {} : { sessionKey })] })
  }
  if (kind === 18) return newDelivery({ ...common, state: 'skipped' })
  const job = newJob({ planned: planned(sessionKey), state: 'done', events: [event] })
  return newDelivery({ ...common, jobs: [job] })
}
