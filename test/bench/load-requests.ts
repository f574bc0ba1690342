// The requests of the load. Each connection has its own.
import { createHmac, createSecretKey } from 'node:crypto'
import { createEventBody } from './events.ts'
import type { LoadJob } from './load.ts'

/** `next` overwrites the buffer of the previous request, which was already sent and answered. */
export type Requests = { next(): Buffer }

/** The placeholders in the head that each signed request overwrites. */
const noSerial = '0'.repeat(36)
const noDigest = '0'.repeat(64)

// several processes may send to one server, and equal numbers would be one delivery
let serial = (process.pid % 10_000) * 10_000_000

export function createRequests(job: LoadJob, seed: number): Requests {
  return job.isBad ? createBadRequests(job, seed) : createGoodRequests(job, seed)
}

function createGoodRequests(job: LoadJob, seed: number): Requests {
  const body = createEventBody(job.bytes, seed)
  const proof = job.signed
    ? `x-github-event: issues\r\nx-github-delivery: ${noSerial}\r\nx-hub-signature-256: sha256=${noDigest}\r\n`
    : `authorization: Bearer ${job.token}\r\n`
  const head = buildHead(job, { proof, client: job.client, length: body.bytes.length })
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

/** A wrong token, a body that is not JSON, and a body that is too large, in turn, each from another client: the same one would be locked out. */
function createBadRequests(job: LoadJob, seed: number): Requests {
  const { bytes } = createEventBody(job.bytes, seed)
  const build = (proof: string, body: Buffer, length = body.length) => {
    const client = `10.${(serial >> 16) & 255}.${(serial >> 8) & 255}.${serial & 255}`
    return Buffer.concat([Buffer.from(buildHead(job, { proof, client, length }), 'latin1'), body])
  }
  const valid = `authorization: Bearer ${job.token}\r\n`
  let turn = seed
  return {
    next() {
      serial += 1
      turn += 1
      if (turn % 3 === 0) return build('authorization: Bearer a-token-that-was-guessed\r\n', bytes)
      if (turn % 3 === 1) return build(valid, bytes.subarray(0, -1))
      return build(valid, bytes, 1_000_000)
    },
  }
}

function buildHead(
  { method = 'POST', path, port }: LoadJob,
  { proof, client, length }: { proof: string; client: string | undefined; length: number },
): string {
  const forwarded = client === undefined ? '' : `x-forwarded-for: ${client}\r\n`
  return (
    `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${proof}${forwarded}` +
    `content-type: application/json\r\nuser-agent: hookloom-bench\r\ncontent-length: ${length}\r\n\r\n`
  )
}
