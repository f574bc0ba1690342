// A process that sends webhooks over raw sockets with keep-alive, one request at a time on each socket. A client library would use more of
// the machine than the measured server does.
import { createHmac, createSecretKey } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { createEventBody } from './events.ts'
import { computeQuantile } from './statistics.ts'

export type LoadJob = {
  readonly port: number
  readonly path: string
  /** Default: POST. */
  readonly method?: 'POST' | 'PUT'
  readonly token: string
  /** True: signs requests as GitHub does, with the token as the secret. */
  readonly signed?: boolean
  readonly connections: number
  /** The size of a body. */
  readonly bytes: number
  readonly seconds: number
}

export type LoadResult = {
  /** The number of requests a second that were answered with success in the measured time. */
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** The number of all requests that were answered with success, including those before the measured time. */
  readonly answered: number
  /** The time from the first connection to the last answer. */
  readonly tookSeconds: number
}

/** The time before the measurement, in which connections open and queues fill. */
const rampMs = 150

let serial = 0

function run(job: LoadJob): Promise<LoadResult> {
  const begun = performance.now()
  const started = begun + rampMs
  const end = started + job.seconds * 1000
  const latencies: number[] = []
  let answered = 0
  let open = 0
  let sockets: Socket[] = []

  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      for (const socket of sockets) socket.destroy()
      reject(new Error(`${job.path} with ${job.connections} connections: ${reason}`))
    }
    const finish = () => {
      resolve({
        perSecond: latencies.length / job.seconds,
        p50Ms: computeQuantile(latencies, 0.5),
        p99Ms: computeQuantile(latencies, 0.99),
        answered,
        tookSeconds: (performance.now() - begun) / 1000,
      })
    }
    sockets = Array.from({ length: job.connections }, (_, seed) => {
      const request = createRequest(job, seed)
      const socket = connect({ port: job.port, host: '127.0.0.1', noDelay: true })
      let sentAt = 0
      let head = ''
      const send = () => {
        sentAt = performance.now()
        socket.write(request.next())
      }
      open += 1
      socket.on('connect', send)
      socket.on('error', (error) => fail(error.message))
      socket.on('data', (chunk) => {
        head += chunk.toString('latin1')
        const rest = countMissingBytes(head)
        if (rest > 0) return
        if (rest < 0 || !/^HTTP\/1\.1 20[024] /.test(head)) return fail(`unexpected answer: ${head.slice(0, 600)}`)
        head = ''
        const now = performance.now()
        answered += 1
        if (now >= started && now < end) latencies.push(now - sentAt)
        if (now < end) return send()
        socket.destroy()
        open -= 1
        if (open === 0) finish()
      })
      return socket
    })
  })
}

/** The number of bytes of an answer that have not come yet. Negative if too many bytes came, or if the answer has no length. */
function countMissingBytes(text: string): number {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return 1
  if (text.startsWith('HTTP/1.1 204')) return end + 4 - text.length
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(text.slice(0, end + 2))?.[1]
  return length === undefined ? -1 : end + 4 + Number(length) - text.length
}

/** The placeholders in the head that each signed request overwrites. */
const noSerial = '0'.repeat(36)
const noDigest = '0'.repeat(64)

/** One buffer for each connection. A new request overwrites the previous one, which was already sent and answered. */
function createRequest(job: LoadJob, seed: number): { next(): Buffer } {
  const body = createEventBody(job.bytes, seed)
  const proof = job.signed
    ? `x-github-event: issues\r\nx-github-delivery: ${noSerial}\r\nx-hub-signature-256: sha256=${noDigest}\r\n`
    : `authorization: Bearer ${job.token}\r\n`
  const head =
    `${job.method ?? 'POST'} ${job.path} HTTP/1.1\r\nhost: 127.0.0.1:${job.port}\r\n${proof}` +
    `content-type: application/json\r\nuser-agent: hookloom-bench\r\ncontent-length: ${body.bytes.length}\r\n\r\n`
  const whole = Buffer.concat([Buffer.from(head, 'latin1'), body.bytes])
  const tail = whole.subarray(head.length)
  const key = createSecretKey(job.token, 'utf8')
  return {
    next() {
      serial += 1
      body.renumber(serial)
      body.bytes.copy(tail)
      if (job.signed) {
        whole.write(String(serial).padStart(noSerial.length, '0'), whole.indexOf('x-github-delivery: ') + 19, 'latin1')
        const digest = createHmac('sha256', key).update(body.bytes).digest('hex')
        whole.write(digest, whole.indexOf('=', whole.indexOf('x-hub-signature-256: ')) + 1, 'latin1')
      }
      return whole
    },
  }
}

process.on('message', (job: LoadJob) => {
  run(job).then(
    (result) => process.send?.({ result }),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
})
process.on('disconnect', () => process.exit())
process.send?.({ result: 'ready' })
