// A process that sends webhooks: in a closed loop, in which each connection sends its next request after an answer, or in an open loop, in which each
// request has its time.
import { appendFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { type Connection, createConnection } from './connection.ts'
import { createRequests, type Requests } from './load-requests.ts'
import { createSchedule } from './schedule.ts'
import { computeQuantile } from './statistics.ts'

export type LoadJob = {
  readonly port: number
  readonly path: string
  /** Default: POST. */
  readonly method?: 'POST' | 'PUT'
  readonly token: string
  /** True: signs requests as GitHub does, with the token as the secret. */
  readonly signed?: boolean
  /** The client whose requests a proxy passes on. Default: no proxy. */
  readonly client?: string
  /** True: requests that deserve 400, 401 or 413. */
  readonly isBad?: boolean
  readonly connections: number
  /** The size of a body. */
  readonly bytes: number
  readonly seconds: number
  /** An open loop with this number of requests a second. Without a free connection, a request waits, and its latency counts from its time. */
  readonly perSecond?: number
  /** True: other answers are counted. Default: the load fails at the first one. */
  readonly isPatient?: boolean
  /** A file that gets the id of each acknowledged delivery, one a line. */
  readonly receipts?: string
}

export type LoadResult = {
  /** The number of requests a second that were answered with success in the measured time. */
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly maxMs: number
  /** How late an open loop found that requests were due, p99. It is part of their latency, and no fault of the server. */
  readonly lateMs: number
  /** The number of all requests that were answered with success, including those before the measured time. */
  readonly answered: number
  /** Those answered 429 or 503 with Retry-After. */
  readonly later: number
  /** Those with any other answer, or none. */
  readonly others: number
  /** The time from the first connection to the last answer. */
  readonly tookSeconds: number
}

/** The time before the measurement, in which connections open and queues fill. */
const rampMs = 150
/** The time that the last answers of an open loop may take. */
const patienceMs = 60_000

type Sender = { readonly connection: Connection; readonly requests: Requests }
type Times = { readonly started: number; readonly end: number }

async function run(job: LoadJob): Promise<LoadResult> {
  const begun = performance.now()
  const started = begun + rampMs
  const times: Times = { started, end: started + job.seconds * 1000 }
  const senders = Array.from({ length: job.connections }, (_, seed) => ({
    connection: createConnection(job.port),
    requests: createRequests(job, seed),
  }))
  const tally = createTally(job, times)
  try {
    const send = job.perSecond === undefined ? sendInTurn : sendOnTime
    await send(senders, { job, times, tally })
  } finally {
    for (const { connection } of senders) connection.close()
  }
  if (job.receipts !== undefined) appendFileSync(job.receipts, tally.ids.map((id) => `${id}\n`).join(''))
  return tally.summarize((performance.now() - begun) / 1000)
}

type Tally = {
  /** Throws if the answer is none of the expected ones and the load is not patient. `from`: the time from which its latency counts. */
  add(answer: string, from: number): void
  readonly late: number[]
  readonly ids: readonly string[]
  summarize(tookSeconds: number): LoadResult
}

function createTally(job: LoadJob, times: Times): Tally {
  const { path, connections, seconds, isBad, isPatient, receipts } = job
  const isOpen = job.perSecond !== undefined
  const expected = isBad ? /^HTTP\/1\.1 4(?:00|01|13) / : /^HTTP\/1\.1 20[024] /
  const latencies: number[] = []
  const late: number[] = []
  const ids: string[] = []
  let [answered, later, others] = [0, 0, 0]
  return {
    late,
    ids,
    add(answer, from) {
      const now = performance.now()
      if (expected.test(answer)) {
        answered += 1
        if (isOpen || (now >= times.started && now < times.end)) latencies.push(now - from)
        if (receipts !== undefined && !isBad)
          ids.push(/"deliveryId":"([^"]+)"/.exec(answer)?.[1] ?? `an answer without an id, ${answered}`)
      } else if (/^HTTP\/1\.1 (?:429|503) /.test(answer) && /\r\nretry-after: \d/i.test(answer)) later += 1
      else others += 1
      if (!isPatient && later + others > 0) {
        throw new Error(`${path} with ${connections} connections: unexpected answer: ${answer.slice(0, 600)}`)
      }
    },
    summarize: (tookSeconds) => ({
      perSecond: latencies.length / seconds,
      p50Ms: computeQuantile(latencies, 0.5),
      p99Ms: computeQuantile(latencies, 0.99),
      p999Ms: computeQuantile(latencies, 0.999),
      maxMs: computeQuantile(latencies, 1),
      lateMs: late.length === 0 ? 0 : computeQuantile(late, 0.99),
      answered,
      later,
      others,
      tookSeconds,
    }),
  }
}

type Loop = { readonly job: LoadJob; readonly times: Times; readonly tally: Tally }

/** The closed loop. */
function sendInTurn(senders: readonly Sender[], { times, tally }: Loop): Promise<void> {
  let open = senders.length
  return new Promise((resolve, reject) => {
    const send = ({ connection, requests }: Sender) => {
      const sentAt = performance.now()
      connection.send(requests.next(), (answer) => {
        try {
          tally.add(answer, sentAt)
        } catch (error) {
          return reject(error)
        }
        if (performance.now() < times.end) return send({ connection, requests })
        open -= 1
        if (open === 0) resolve()
      })
    }
    senders.forEach(send)
  })
}

/** The open loop. */
function sendOnTime(senders: readonly Sender[], { job, times, tally }: Loop): Promise<void> {
  const { perSecond = 1, seconds } = job
  const schedule = createSchedule({ perSecond, seconds, beginsAt: times.started })
  const free = [...senders]
  const due: number[] = []
  let [sent, done] = [0, 0]
  return new Promise((resolve, reject) => {
    const giveUp = setTimeout(
      () => {
        reject(
          new Error(`${job.path}: of ${schedule.total} requests, ${done} were answered in ${patienceMs / 1000} s.`),
        )
      },
      patienceMs + seconds * 1000,
    )
    const settle = (end: () => void) => {
      clearTimeout(giveUp)
      end()
    }
    const sendDue = () => {
      while (sent < due.length) {
        const sender = free.pop()
        if (sender === undefined) return
        const dueAt = due[sent] ?? 0
        sent += 1
        sender.connection.send(sender.requests.next(), (answer) => {
          try {
            tally.add(answer, dueAt)
          } catch (error) {
            return settle(() => reject(error))
          }
          done += 1
          free.push(sender)
          if (done === schedule.total) return settle(resolve)
          sendDue()
        })
      }
    }
    const look = () => {
      const now = performance.now()
      for (const dueAt of schedule.take(now)) {
        due.push(dueAt)
        tally.late.push(now - dueAt)
      }
      sendDue()
      if (!schedule.isDone) setTimeout(look, 1)
    }
    look()
  })
}

process.on('message', (job: LoadJob) => {
  run(job).then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
})
process.on('disconnect', () => process.exit())
process.send?.({ result: 'ready' })
