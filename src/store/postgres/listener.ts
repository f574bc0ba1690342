// Signals between gateways: LISTEN on a separate connection, which pings check. Once a second, a query looks for work whose signal was lost.
import { randomBytes } from 'node:crypto'
import { toBackoffMs } from '../../base/retry.ts'
import type { Log } from '../../base/log.ts'
import type { Signal } from '../owners.ts'
import { clockSetBackMs } from '../rules.ts'
import { DatabaseClient } from './client.ts'
import type { Query } from './pool.ts'

export type ListenerTimes = {
  /** The time between two pings. */
  readonly pingMs: number
  /** If a ping has not come back after this time, the connection is dead, or a pooler keeps the notifications. */
  readonly pongMs: number
  readonly pollMs: number
}

type Listener = {
  subscribe(listener: (signal: Signal) => void): () => void
  /** The text of a notification that all other gateways understand; empty for no signal. */
  toPayload(signals: readonly Signal[]): string
  /** Why signals come late; undefined while they come at once, or while nobody listens. */
  warning(): string | undefined
  close(): void
}

/** The channel is named after the table, so two installations in one database do not hear each other. */
export const channel = `('hookloom_' || 'leases'::regclass::oid)`
const letters: Readonly<Record<string, Signal>> = { j: 'jobs', w: 'waiting' }
const ping = 'p'
const retry = { firstMs: 500, capMs: 30_000 }
const connectMs = 5_000
/** The number of queued jobs that are read, oldest first: the query must stay cheap while a million jobs wait for their retries. */
const maxJobs = 200

const selectWork = (now: string) => `SELECT
  (EXISTS (SELECT 1 FROM (SELECT run_at, created_at FROM jobs WHERE state = 'queued' ORDER BY seq LIMIT ${maxJobs}) first
      WHERE run_at <= ${now} OR run_at = created_at OR run_at > ${now} + ${clockSetBackMs})
    OR EXISTS (SELECT 1 FROM jobs WHERE state = 'running' AND locked_until <= ${now}))::int AS jobs,
  EXISTS (SELECT 1 FROM deliveries WHERE state IN ('pending', 'parked'))::int AS waiting,
  EXISTS (SELECT 1 FROM events WHERE consumed_at IS NULL AND wakes = 1)::int AS wakes`

/** One attempt to listen. Its identity shows whether a late event belongs to an earlier attempt. */
type Attempt = { client?: DatabaseClient }

/**
 * ```
 *          subscribe              LISTEN succeeded
 *   unused ────────▶ connecting ───────────────────▶ listening
 *                     ▲      │ error                  │ error, end, or a ping that does not come back
 *                     │      ▼                        │
 *                     └──── lost ◀────────────────────┘
 *               after a pause
 *
 *   `close` leads from each state to closed.
 * ```
 */
type State =
  | { readonly kind: 'unused' | 'lost' | 'closed' }
  | { readonly kind: 'connecting' | 'listening'; readonly attempt: Attempt }

export function createListener(parts: {
  readonly url: string
  readonly query: Query
  readonly now: () => string
  readonly log: Log
  readonly times?: ListenerTimes | undefined
}): Listener {
  const {
    url,
    query,
    now,
    log,
    times: { pingMs, pongMs, pollMs } = { pingMs: 10_000, pongMs: 5_000, pollMs: 1_000 },
  } = parts
  const sender = randomBytes(4).toString('hex')
  const listeners = new Set<(signal: Signal) => void>()
  let state: State = { kind: 'unused' }
  /** True: pings do not come back, and the operator has been warned. */
  let isSilent = false
  let failures = 0
  let pong: (() => void) | undefined
  let timers: NodeJS.Timeout[] = []
  let isLooking = false

  const notifyListeners = (signal: Signal) => {
    for (const listener of listeners) listener(signal)
  }

  function receive(payload: string | undefined): void {
    const [from, said = ''] = (payload ?? '').split(' ')
    if (from === sender && said === ping) return pong?.()
    if (from === sender) return
    for (const letter of said) {
      const signal = letters[letter]
      if (signal !== undefined) notifyListeners(signal)
    }
  }

  const isCurrent = (attempt: Attempt) => 'attempt' in state && state.attempt === attempt

  async function connect(): Promise<void> {
    if (state.kind === 'closed') return
    const attempt: Attempt = {}
    state = { kind: 'connecting', attempt }
    try {
      const client = new DatabaseClient({
        connectionString: url,
        keepAlive: true,
        connectionTimeoutMillis: connectMs,
        query_timeout: connectMs,
        application_name: 'hookloom listener',
      })
      attempt.client = client
      client.on('error', () => lose(attempt))
      client.on('end', () => lose(attempt))
      client.on('notification', ({ payload }) => receive(payload))
      // first a query of the pool, which creates the tables
      await query('SELECT 1')
      // a socket that `close` destroyed would connect again
      if (!isCurrent(attempt)) return
      await client.connect()
      const { rows } = await client.query(`SELECT ${channel} AS name`)
      await client.query(`LISTEN "${String(rows[0].name)}"`)
      if (!isCurrent(attempt)) return
      state = { kind: 'listening', attempt }
      await check()
    } catch {
      lose(attempt)
    }
  }

  function lose(attempt: Attempt): void {
    if (!isCurrent(attempt)) return
    state = { kind: 'lost' }
    attempt.client?.destroy()
    runLater(() => void connect(), toBackoffMs(failures, retry))
    failures += 1
  }

  /** The pool sends the ping, over another connection: with some poolers, a connection gets only the notifications that it sent itself. */
  async function check(): Promise<void> {
    if (state.kind !== 'listening') return
    const { attempt } = state
    const isLate = setTimeout(() => reportSilence(attempt), pongMs).unref()
    pong = () => {
      clearTimeout(isLate)
      failures = 0
      if (isSilent) log.info({}, 'Notifications from Postgres arrive again.')
      isSilent = false
    }
    try {
      await query(`SELECT pg_notify(${channel}, $1)`, `${sender} ${ping}`)
    } catch {
      // the database cannot be used at all; the store reports it
      clearTimeout(isLate)
    }
  }

  function reportSilence(attempt: Attempt): void {
    if (!isCurrent(attempt)) return
    if (!isSilent) log.warn({}, silenceText)
    isSilent = true
    lose(attempt)
  }

  async function lookOnce(): Promise<void> {
    if (isLooking) return
    isLooking = true
    const [found] = await query(selectWork(now())).catch(() => [])
    isLooking = false
    if (state.kind === 'closed') return
    for (const signal of ['jobs', 'waiting', 'wakes'] as const) if (found?.[signal] === 1) notifyListeners(signal)
  }

  function runLater(run: () => void, ms: number): void {
    const timer = setTimeout(() => {
      timers = timers.filter((each) => each !== timer)
      run()
    }, ms).unref()
    timers.push(timer)
  }

  function start(): void {
    void connect()
    timers.push(setInterval(() => void check(), pingMs).unref(), setInterval(() => void lookOnce(), pollMs).unref())
  }

  return {
    subscribe(listener) {
      if (state.kind === 'unused') start()
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    toPayload: (signals) => {
      const said = Object.keys(letters).filter((letter) => signals.includes(letters[letter] ?? 'wakes'))
      return said.length === 0 ? '' : `${sender} ${said.join('')}`
    },
    warning: () => (isSilent ? silenceText : undefined),
    close() {
      for (const timer of timers) clearTimeout(timer)
      const client = 'attempt' in state ? state.attempt.client : undefined
      state = { kind: 'closed' }
      client?.destroy()
    },
  }
}

const silenceText =
  'Notifications from Postgres do not arrive, so the gateway looks once a second for the work of other gateways. LISTEN needs a ' +
  'direct connection, or a pooler in session mode.'
