// A store with rows of every kind that an agent is told or that is sent, and everything that can be read from it.
import { checkIntegrity } from '../../src/cli/checks/store.ts'
import { claim } from '../../src/store/sqlite/jobs.ts'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { migrate } from '../../src/store/sqlite/migrations.ts'
import { createReadConnection } from '../../src/store/sqlite/connection.ts'
import { createReads, type Reads } from '../../src/store/sqlite/reads.ts'
import { findWalDamage } from '../../src/store/sqlite/wal-damage.ts'
import { damagedText } from '../../src/store/sqlite/sums.ts'
import { rowDamagedReason } from '../../src/store/rules.ts'
import { toClaimedJob } from '../../src/store/rows.ts'
import type { WaitingEvent } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'
import { accepted, keyed, newDelivery, newEvent, newJob, newWake, parked, planned, request } from '../contract/stage.ts'

const each = 8
const sessions = ['main', 'hook:one', 'hook:two']

/** Requests that are parked, kept or answered, runs that wait or have recorded a turn, events, transcripts, and states of sessions. */
export async function fillStore(store: Store): Promise<void> {
  const at = Date.now()
  for (let n = 0; n < each; n += 1) {
    const text = `The build ${n} of the branch main has failed: ${'see the log. '.repeat(20 * (n % 4))}`
    const session = sessions[n % sessions.length] ?? 'main'
    await store.append(newDelivery({ at, ...parked({ request: request(JSON.stringify({ n, text })) }) }))
    const kept = accepted({ request: request(JSON.stringify({ kept: n, text })), ringSize: each })
    const job = newJob({ planned: planned(session), events: [newEvent({ sessionKey: session, text })] })
    await store.append(newDelivery({ at, ...keyed(`key-${n}`), ...kept, jobs: [job] }))
    await store.append(newDelivery({ at, ...accepted(), jobs: [newWake(text, { wakes: n % 2 === 0 })] }))
    const twins = [newJob({ planned: planned(session) }), newJob({ planned: planned(session), lane: 'lane' })]
    await store.append(newDelivery({ at, ...accepted(), jobs: twins }))
  }
  const jobs = await store.claim({ limit: each, leaseMs: 60_000 })
  for (const [n, job] of jobs.entries()) {
    await store.report(job, {
      steps: [{ name: 'run', state: 'done', at, result: `The reply ${n}: rebuild it. ${'It is red. '.repeat(30)}` }],
      messages: [
        { role: 'user', text: `What failed in build ${n}?` },
        { role: 'assistant', text: `The reply ${n}. ${'The tests are red. '.repeat(20 * (n % 3))}` },
      ],
      runnerState: { conversation: `conversation-${n}` },
      recipient: { channel: 'slack', to: `room-${n}` },
      outcome: n % 2 === 0 ? { kind: 'done' } : { kind: 'release' },
    })
  }
}

export type Seen = {
  /** What an agent is told, what is sent, and what a sender is answered, by its name. */
  readonly used: ReadonlyMap<string, string>
  /** What is only shown: lists and counts. */
  readonly shown: ReadonlyMap<string, string>
  /** Where the reading said that something is damaged. */
  readonly told: readonly string[]
}

const all = { limit: 1_000 }

/** Reads everything as a gateway and the commands do, and then claims each run. `ids` are the deliveries that were stored. */
export async function readStore(file: string, ids: readonly string[]): Promise<Seen> {
  const used = new Map<string, string>()
  const shown = new Map<string, string>()
  const told: string[] = []
  const note = (to: Map<string, string>, name: string, value: unknown) => {
    const text = JSON.stringify(value, (_, part) =>
      part instanceof Uint8Array ? Buffer.from(part).toString('hex') : part,
    )
    if (text !== undefined && (text.includes(damagedText) || text.includes(rowDamagedReason))) told.push(name)
    to.set(name, text ?? 'nothing')
  }
  const attempt = async (name: string, read: () => Promise<void>) => {
    try {
      await read()
    } catch (error) {
      told.push(`${name}: ${String(error)}`)
    }
  }
  const connection = createReadConnection(file)
  const reads = createReads(connection, Date.now)
  await readUsed(reads, ids, { attempt, note: (name, value) => note(used, name, value), told })
  for (const name of ['deliveries', 'events', 'sessions', 'deadJobs', 'openJobs'] as const)
    await attempt(name, async () => note(shown, name, await reads[name](all)))
  await attempt('counts', async () => note(shown, 'counts', await reads.counts()))
  connection.close()
  await attempt('claims', async () => {
    const db = openDatabase(file, { readOnly: false, busyMs: 0 })
    try {
      migrate(db, 'store')
      // a claim ends what is damaged, so the next ones find what it held back
      const at = Date.now() + 3_600_000
      const { rows } = claim(db, { kind: 'claim', at, limit: 1_000, leaseMs: 60_000, limits: {}, only: undefined })
      for (const row of rows) {
        const { id, planned: plan, steps, posts, deliveryId } = toClaimedJob(row, at)
        note(used, `run ${id}`, { plan, steps, posts, deliveryId })
      }
      for (const { id } of db.all(`SELECT id FROM jobs WHERE state = 'dead' AND last_error = ?`, rowDamagedReason))
        told.push(`run ${String(id)}`)
    } finally {
      db.close()
    }
  })
  return { used, shown, told }
}

type Reading = {
  readonly attempt: (name: string, read: () => Promise<void>) => Promise<void>
  readonly note: (name: string, value: unknown) => void
  readonly told: string[]
}

/** What an agent is told of an event. That it was consumed is a state, which has no checksum, and which lists show. */
function toTold(event: WaitingEvent): object {
  return { ...event, consumedAt: undefined }
}

async function readUsed(reads: Reads, ids: readonly string[], { attempt, note, told }: Reading): Promise<void> {
  await attempt('open', async () => {
    for (const { deliveryId, request: kept, receivedAt, hook } of await reads.openDeliveries(all)) {
      if (kept === undefined) told.push(`open ${deliveryId}`)
      note(`open ${deliveryId}`, { kept, receivedAt, hook })
    }
  })
  for (const id of ids) await attempt(`request ${id}`, async () => note(`request ${id}`, await reads.request(id)))
  for (let n = 0; n < each; n += 1) {
    const key = { hook: 'github', key: `key-${n}` }
    await attempt(`answer ${n}`, async () => note(`answer ${n}`, await reads.findAnswer(key)))
  }
  for (const sessionKey of sessions) {
    const session = { agentId: 'main', sessionKey }
    await attempt(`events ${sessionKey}`, async () => {
      const waiting = await reads.waitingEvents({ ...session, ...all })
      note(`events ${sessionKey}`, { ...waiting, events: waiting.events.map(toTold) })
    })
    await attempt(`messages ${sessionKey}`, async () =>
      note(`messages ${sessionKey}`, await reads.messages({ ...session, ...all })),
    )
    await attempt(`session ${sessionKey}`, async () => {
      const { recipient, runnerState } = (await reads.session(session)) ?? {}
      note(`session ${sessionKey}`, { recipient, runnerState })
    })
  }
}

/** What `doctor` says; undefined if it finds nothing. */
export function askDoctor(file: string): string | undefined {
  const { ok, detail } = checkIntegrity(file, findWalDamage(file))
  return ok ? undefined : detail
}

/** The first name whose value differs; undefined if all are the same. */
export function findDifference(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>) {
  return [...new Set([...before.keys(), ...after.keys()])].find((name) => before.get(name) !== after.get(name))
}
