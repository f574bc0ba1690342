// Reads a body completely, in time and under its limit, or throws a Problem. No listener and no timer is left behind.
import { Problem } from '../../core/model/problem.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buildTooLargeProblem, readEncoding, toOwnBuffer } from '../proofs/inflate.ts'

export type BodyOptions = {
  /** The limit in bytes. It applies to the body as it was sent, and again after it is inflated. */
  limit: number
  /** The time from the call until the last byte. */
  timeoutMs: number
  /** Answers `Expect: 100-continue`. Called just before the first read. */
  continueNow?: (() => void) | undefined
  /** Called with the number of bytes that are needed in addition; a negative number gives bytes back. Throws if there is no memory left. */
  take?: ((bytes: number) => void) | undefined
}

/**
 * The body of a request as it was sent. It has its own ArrayBuffer: a slice of the socket's memory would carry the headers, with the token, to
 * the thread that gets the body. Throws `body-too-large` (for a declared length before any byte is read), `encoding-unsupported`,
 * `body-timeout`, `body-incomplete`, and the errors of `take`. After a throw the rest of the body is unread: call `dropRest` before the answer.
 */
export async function readBody(req: IncomingMessage, options: BodyOptions): Promise<Buffer<ArrayBuffer>> {
  // Node's parser accepts only digits here, and refuses a length together with chunked encoding
  const declared = Number(req.headers['content-length'] ?? 0)
  if (declared > options.limit) throw buildTooLargeProblem(options.limit)
  readEncoding(req.headers['content-encoding'])
  options.continueNow?.()
  // Node parses the rest of the packet first. Most bodies are complete then, and need no listeners and no timer
  await undefined
  const hasArrived = declared > 0 && req.readableLength === declared && !req.destroyed
  return hasArrived ? readArrived(req, options) : await collect(req, declared, options)
}

/** The longest time that a refusal waits for a body that is only kept. */
const maxWaitToKeepMs = 2_000

/**
 * Reads a body that is not needed for the answer. Undefined if its length is not declared or not accepted, if it does not arrive soon, or if
 * reading fails. Never throws.
 */
export async function readBodySoon(
  req: IncomingMessage,
  { accepts, ...options }: Pick<BodyOptions, 'continueNow' | 'take'> & { readonly accepts: (bytes: number) => boolean },
): Promise<Buffer<ArrayBuffer> | undefined> {
  const limit = Number(req.headers['content-length'] ?? 0)
  if (limit === 0 || !accepts(limit)) return undefined
  return readBody(req, { ...options, limit, timeoutMs: maxWaitToKeepMs }).catch(() => undefined)
}

/** A body of a declared length that has arrived completely. */
function readArrived(req: IncomingMessage, { take }: BodyOptions): Buffer<ArrayBuffer> {
  take?.(req.readableLength)
  // as: a request without a text encoding gives buffers, and Node copies each from the packet
  const bytes = req.read() as Buffer<ArrayBuffer>
  return bytes.length === bytes.buffer.byteLength ? bytes : toOwnBuffer(bytes, bytes.length)
}

function collect(
  req: IncomingMessage,
  declared: number,
  { limit, timeoutMs, take }: BodyOptions,
): Promise<Buffer<ArrayBuffer>> {
  return new Promise((resolve, reject) => {
    // a destroyed stream emits no more events
    if (req.destroyed) return reject(buildIncompleteProblem())
    // one buffer, because a list of chunks costs 200 bytes for each one-byte chunk. With `take`, the buffer begins empty, because a stranger may
    // declare a length and send nothing
    let held = Buffer.from(new ArrayBuffer(take === undefined ? declared : 0))
    let size = 0

    const release = () => {
      clearTimeout(timer)
      req.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut)
    }
    const fail = (problem: unknown) => {
      release()
      // without a listener a flowing stream would read on and discard the bytes
      req.pause()
      reject(problem)
    }
    const onData = (chunk: Buffer) => {
      const needed = size + chunk.length
      if (needed > limit) return fail(buildTooLargeProblem(limit))
      if (needed > held.length) {
        const room = Math.min(declared || limit, Math.max(needed, held.length * 2))
        try {
          take?.(room - held.length)
        } catch (error) {
          return fail(error)
        }
        held = toOwnBuffer(held, room)
      }
      chunk.copy(held, size)
      size = needed
    }
    const onEnd = () => {
      release()
      resolve(size === held.length ? held : toOwnBuffer(held, size))
    }
    const onCut = () => fail(buildIncompleteProblem())
    const timer = setTimeout(
      () => fail(new Problem('body-timeout', `The body was not complete after ${timeoutMs} ms.`)),
      timeoutMs,
    )
    req.on('end', onEnd).on('error', onCut).on('close', onCut).on('data', onData)
  })
}

function buildIncompleteProblem(): Problem {
  return new Problem('body-incomplete', 'The connection ended before the body did.')
}

/**
 * Whether a part of the body may be unread. RFC 9112, 6.3: a body has a length or a Transfer-Encoding. `complete` alone does not show it, because
 * Node sets it one turn of the event loop late, even for a request without a body.
 */
function isFollowedByBody({ headers, readableDidRead, readableFlowing }: IncomingMessage): boolean {
  // only `readArrived` reads a stream that does not flow, and it reads everything
  if (readableDidRead && readableFlowing === null) return false
  return Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined
}

const maxDrainedBytes = 64 * 1024
const maxDrainMs = 1_000

/**
 * Closes the connection of a request whose body will not be read. Call it before the answer ends. A complete
 * request keeps its connection. After the answer is flushed, up to 64 kB are read, and the sender has a second to read the answer.
 */
export function dropRest(req: IncomingMessage, res: ServerResponse): void {
  const { socket } = req
  if (req.complete || !isFollowedByBody(req) || socket.destroyed) return
  if (!res.headersSent) res.setHeader('Connection', 'close')

  // Node destroys the socket as soon as the last answer is flushed. If bytes are still unread in the kernel, this sends a reset,
  // and the sender may lose the answer. So: end our side, read a little, then destroy.
  socket.destroySoon = () => socket.end()
  // before Node's own listener, which drains an unread body without a limit
  res.prependOnceListener('finish', () => {
    let drained = 0
    const timer = setTimeout(() => socket.destroy(), maxDrainMs)
    socket.once('close', () => clearTimeout(timer))
    req.on('data', (chunk: Buffer) => {
      drained += chunk.length
      // no reset yet: a proxy that still writes the body would answer 502 in place of the answer, which it has not read
      if (drained > maxDrainedBytes) req.pause()
    })
    req.once('end', () => socket.destroy())
    req.resume()
  })
}
