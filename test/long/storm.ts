// Senders post to three gateways while each part that can fail does fail. At the end, every delivery is accounted for.
import { writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { expect } from 'vitest'
import { createPostgresReader } from '../../src/store/postgres/postgres.ts'
import { type Cluster, startCluster, startFleet, type Fleet } from '../e2e/fleet.ts'
import { askRun, createDice, createLoad, postOnce, type Sent } from '../e2e/load.ts'
import { createHistory, type History, recordStored, startWitness } from '../history/history.ts'
import type { Verdict } from '../history/check.ts'

export type Storm = {
  readonly seed: number
  readonly kills: number
  readonly restarts: number
  readonly cuts: number
  /** The number of pauses. Each pause is longer than a lease. */
  readonly pauses: number
  /** The maximum number of deliveries a second. */
  readonly rate: number
}

const lanes = ['hook:lane-a', 'hook:lane-b', 'hook:lane-c']
const leaseMs = 30_000
const beatMs = 5_000
/** Only a few are `rolled`, because parked deliveries run again one by one. */
const kinds: readonly Sent['kind'][] = ['wake', 'wake', 'agent', 'agent', 'mapped', 'mapped', 'rolled']
const module = 'rolled.ts'
const before = `export default ({ payload }) => { throw new Error('this version cannot do ' + payload.text.slice(0, 8)) }`
const after = `export default ({ payload }) => ({ message: payload.text, deliver: false })`

const key = /(?:delivery|ordered-\d)-\d+\./g

const buildConfig = ({ models, agents }: Awaited<ReturnType<typeof startWitness>>) => ({
  models,
  hooks: {
    allowRequestSessionKey: true,
    mappings: [
      { id: 'mapped', match: { path: 'mapped' }, messageTemplate: '{{text}}', deliver: false },
      { id: 'rolled', match: { path: 'rolled' }, transform: { module } },
    ],
  },
  agents: {
    defaults: {
      ...agents.defaults,
      heartbeat: { every: '5s', minIntervalSeconds: beatMs / 1_000 },
      // the limit is for loops, and each lane has hundreds of turns
      maxTurnsPerHour: 0,
    },
  },
})

/** Returns what the checker of the history counted. */
export async function runStorm(storm: Storm): Promise<Verdict> {
  const pickBelow = createDice(storm.seed)
  const cluster = await startCluster()
  const history = createHistory('storm')
  const config = buildConfig(await startWitness(history, key))
  const files = { [`hooks/transforms/${module}`]: before }
  const fleet = await startFleet({ size: 3, database: cluster.url, config, files, pickBelow })
  const load = createLoad({ connections: 16, pickBelow, kinds, history })
  const opening = setInterval(() => load.open(fleet.front, storm.rate / 5), 200)
  const ordered = sendInOrder(fleet, history)
  try {
    await Promise.all([
      repeat(
        storm.kills,
        () => history.during('kill', () => fleet.killOne(pickBelow(3))),
        () => 500 + pickBelow(3_000),
      ),
      repeat(
        storm.restarts,
        () => history.during('restart of the database', () => cluster.restart()),
        () => 2_000 + pickBelow(20_000),
      ),
      repeat(
        storm.cuts,
        () => history.during('cut', () => cutOne(cluster, pickBelow)),
        () => 500 + pickBelow(6_000),
      ),
      repeat(
        storm.pauses,
        () => history.during('pause', () => fleet.pauseOne(pickBelow(3), leaseMs + 5_000)),
        () => 1_000,
      ),
    ])
    // the gateways get the corrected module one after the other
    for (const dir of fleet.dirs) {
      writeFileSync(join(dir, 'hooks/transforms', module), after)
      await wait(1_500)
    }
    await Promise.all([load.finish(), ordered.finish()])
    clearInterval(opening)
    expect(load.unexpected).toEqual([])
    await waitUntilSettled(cluster, fleet)
    await expectTimely(cluster)
    const [dir = ''] = fleet.dirs
    const ask = (run: string) => askRun(fleet.front.url, run)
    await recordStored(history, { ask, dir, env: { DATABASE_URL: cluster.url } })
    await load.repeat(fleet.front, 200)
    expect(await fleet.stop()).toEqual([0, 0, 0])
    return history.judge()
  } finally {
    clearInterval(opening)
  }
}

/** Calls `act` until it has had an effect this many times. */
async function repeat(times: number, act: () => Promise<boolean | void>, pauseMs: () => number): Promise<void> {
  for (let count = 0; count < times;) {
    await wait(pauseMs())
    if ((await act()) !== false) count += 1
  }
}

/** Cuts a connection. Returns false if there was none, or if the server is restarting. */
async function cutOne(cluster: Cluster, below: (limit: number) => number): Promise<boolean> {
  const sql = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name LIKE 'hookloom%' ORDER BY pid OFFSET ${below(9)} LIMIT 1`
  return (await cluster.query(sql).catch(() => [])).length > 0
}

/** Each lane has one sender, which continues only after a 200, so the order of arrival is known. */
function sendInOrder({ front }: Fleet, history: History) {
  const agent = new Agent({ keepAlive: true })
  const over = new AbortController()
  const senders = lanes.map(async (sessionKey, lane) => {
    for (let number = 0; !over.signal.aborted; number += 1) {
      const text = `ordered-${lane}-${number}.`
      const body = JSON.stringify({ message: text, sessionKey, deliver: false })
      for (let isStored = false; !isStored;) {
        const end = history.invoke(text, sessionKey)
        const options = { token: front.token, key: text, body }
        const answer = await postOnce(agent, `${front.url}/agent`, options).catch(() => undefined)
        end(answer)
        isStored = answer?.status === 200
        if (!isStored) await wait(100)
      }
      await wait(100)
    }
  })
  return {
    async finish() {
      over.abort()
      await Promise.all(senders)
      agent.destroy()
    },
  }
}

const stuckMs = 120_000

/** Resolves when no delivery or job waits. Rejects if nothing has changed for two minutes. */
async function waitUntilSettled(cluster: Cluster, fleet: Fleet): Promise<void> {
  const reader = createPostgresReader({ url: cluster.url })
  try {
    for (let before = '', at = performance.now(); performance.now() - at < stuckMs;) {
      const { deliveries, jobs } = await reader.counts()
      if (deliveries.parked + deliveries.pending + jobs.queued + jobs.running === 0) return
      const now = JSON.stringify([deliveries, jobs.queued, jobs.running])
      if (now !== before) at = performance.now()
      before = now
      await wait(300)
    }
    throw new Error(`It is stuck: ${JSON.stringify(await reader.counts())}\n${fleet.output().slice(-5_000)}`)
  } finally {
    await reader.close()
  }
}

async function expectTimely(cluster: Cluster): Promise<void> {
  const beats = await cluster.query(
    `SELECT gap FROM (SELECT created_at - lag(created_at) OVER (ORDER BY created_at) AS gap FROM jobs
        WHERE stands_for = 'heartbeat/main') beats WHERE gap < ${beatMs}`,
  )
  expect(beats).toEqual([])
  const leases = await cluster.query(
    `SELECT name FROM leases WHERE name LIKE 'delivery/%' AND until > extract(epoch FROM now()) * 1000`,
  )
  expect(leases).toEqual([])
}

/** Only the moments of the failures depend on time. */
function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
