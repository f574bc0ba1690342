// Malformed or ambiguous HTTP gets the usual JSON error, and the connection is closed.
import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type RequestListener, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Problem } from '../../core/model/problem.ts'
import { toRefusalAnswer } from '../../core/mapping/answer.ts'
import { dropRest } from './body.ts'
import { toOriginForm } from './target.ts'

/** The time that the sender may keep its side of a closed connection open, in milliseconds. */
const lingerMs = 1_000

/**
 * The maximum number of headers of a request. Node silently drops the headers above its own limit, perhaps a second Authorization. So Node's limit
 * is one higher, and a request above this limit is refused here.
 */
export const maxHeaders = 1_000

type MalformedGuard = {
  /** Calls the listener for unambiguous requests, and refuses ambiguous ones. Ignores requests after the last answer of a connection. */
  watch(listener: RequestListener): RequestListener
  /** For the event `clientError`. The refusal is sent after the answers to the complete requests before it. */
  answer(error: NodeJS.ErrnoException, socket: Socket): void
}

export function createMalformedGuard(): MalformedGuard {
  /** The last two responses of each connection, the newest first. When a response is sent, all earlier responses are sent. */
  const responses = new WeakMap<Socket, readonly [ServerResponse, ServerResponse | undefined]>()
  /** The connections that got a refusal. The parser repeats its error for each further chunk. */
  const refused = new WeakSet<Socket>()

  return {
    watch: (listener) => (req, res) => {
      // RFC 9112, 9.6: the sender was told that the connection ends, so it may send this request again elsewhere
      const [before] = responses.get(req.socket) ?? []
      if (refused.has(req.socket) || before?.getHeader('connection') === 'close') return
      responses.set(req.socket, [res, before])
      // Node drops the rest of the packet and reads the next packet as a new request, which may be a part of a body. So nothing may follow
      if (req.headers.upgrade !== undefined) res.setHeader('connection', 'close')
      const url = toOriginForm(req.url ?? '')
      const problem = url === undefined ? userInTarget : findAmbiguity(req)
      if (url !== undefined) req.url = url
      if (problem === undefined) return void listener(req, res)
      refused.add(req.socket)
      dropRest(req, res)
      const { status, headers, body } = toClosingAnswer(problem)
      res.writeHead(status, headers).end(body)
    },
    answer(error, socket) {
      if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
      if (refused.has(socket)) return
      refused.add(socket)
      const [newest, previous] = responses.get(socket) ?? []
      // if the newest request is incomplete, it is the malformed one
      const before = newest?.req.complete === false ? previous : newest
      // the answer to the request before comes first: otherwise the sender would take this refusal for it, although the delivery is stored
      if (before !== undefined && !before.writableFinished) {
        before.once('close', () => writeRefusal(error, socket))
      } else {
        writeRefusal(error, socket)
      }
    },
  }
}

function writeRefusal(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return void socket.destroy()
  const { status, headers, body } = toClosingAnswer(toMalformedProblem(error.code))
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
  setTimeout(() => socket.destroy(), lingerMs).unref()
}

function toClosingAnswer(problem: Problem) {
  const { status, body = '' } = toRefusalAnswer(problem)
  const headers = {
    connection: 'close',
    'x-request-id': randomUUID(),
    'x-content-type-options': 'nosniff',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  }
  return { status, headers, body }
}

function toMalformedProblem(code: string | undefined): Problem {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem('body-timeout', 'The request did not arrive in time.')
    case 'HPE_HEADER_OVERFLOW':
      return new Problem('request-malformed', 'The headers are over the limit of 16 kB.')
    default:
      return new Problem('request-malformed', 'The request is not well-formed HTTP.')
  }
}

const userInTarget = new Problem(
  'request-malformed',
  'The target of the request has no host, or a user, which a URL of HTTP must not have.',
)

/**
 * Finds what Node accepts and a proxy may read differently: a version other than 1.0 and 1.1, a target that is neither a path nor a URL, too many
 * headers, two Host headers, none in HTTP/1.1 (RFC 9112, 3.2), and any Transfer-Encoding except `chunked` in HTTP/1.1 (6.1).
 */
function findAmbiguity({ rawHeaders, headers, httpVersion, url = '' }: IncomingMessage): Problem | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return new Problem('request-malformed', 'Only HTTP/1.1 and HTTP/1.0 are supported.')
  }
  // a later parse of the target would throw, and an error is logged with the target, whose query may have a token
  if (!url.startsWith('/') && url !== '*' && !URL.canParse(url)) {
    return new Problem('request-malformed', 'The target of the request is neither a path nor a URL.')
  }
  if (rawHeaders.length > 2 * maxHeaders) {
    return new Problem('request-malformed', `The request has more than ${maxHeaders} headers.`)
  }
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) {
    return new Problem('request-malformed', 'Exactly one Host header is required.')
  }
  const coding = headers['transfer-encoding']
  if (coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion === '1.1')) return undefined
  return new Problem('request-malformed', 'Transfer-Encoding must be chunked, in HTTP/1.1.')
}
