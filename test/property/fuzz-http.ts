// Bytes of HTTP: a gateway may see fewer requests in them than a strict reader does, and none that it does not see.
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { connect } from 'node:net'
import { readBody } from '../../src/gateway/http/body.ts'
import { type Chance, describeFault, type Target } from './mutations.ts'

type SeenRequest = { readonly method: string; readonly target: string; readonly body: string }

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const requestLine = new RegExp(`^(${token}) +([!-~\u0080-\u00ff]+) +(HTTP/1\\.[01])$`)
const fieldLine = new RegExp(`^(${token}):[ \\t]*(.*?)[ \\t]*$`)
const control = /(?![\t\u0080-\u009f])\p{Cc}/u

/** The fields of the lines by their names; undefined if a line is no field. */
function readFields(lines: readonly string[]): Map<string, string[]> | undefined {
  const fields = new Map<string, string[]>()
  for (const line of lines) {
    const [, name, value = ''] = control.test(line) ? [] : (fieldLine.exec(line) ?? [])
    if (name === undefined) return undefined
    fields.set(name.toLowerCase(), [...(fields.get(name.toLowerCase()) ?? []), value])
  }
  return fields
}

type Read = { readonly body: string; readonly rest: string }

/** A chunked body; undefined if it is malformed or incomplete. RFC 9112, 7.1. */
function readChunks(text: string): Read | undefined {
  let [body, rest] = ['', text]
  for (;;) {
    const [line, digits = ''] = /^([\da-f]{1,15})(?:[ \t]*;[\t\P{Cc}\u0080-\u009f]*)?\r\n/iu.exec(rest) ?? []
    if (line === undefined) return undefined
    const size = Number.parseInt(digits, 16)
    rest = rest.slice(line.length)
    if (size === 0) break
    if (rest.slice(size, size + 2) !== '\r\n') return undefined
    body += rest.slice(0, size)
    rest = rest.slice(size + 2)
  }
  const end = `\r\n${rest}`.indexOf('\r\n\r\n')
  const trailers = rest.slice(0, Math.max(0, end)).split('\r\n')
  if (end < 0 || (end > 0 && readFields(trailers.slice(0, trailers.at(-1) === '' ? -1 : undefined)) === undefined))
    return undefined
  return { body, rest: rest.slice(end + 2) }
}

function readSized(text: string, length: string): Read | undefined {
  const size = /^\d{1,15}$/.test(length) ? Number(length) : Infinity
  return text.length < size ? undefined : { body: text.slice(0, size), rest: text.slice(size) }
}

/**
 * The requests that a strict reader sees, up to one that is malformed, incomplete or for another protocol. A reader may stop earlier, as after
 * `Connection: close`. RFC 9112.
 */
function readStrictly(bytes: string): SeenRequest[] {
  const requests: SeenRequest[] = []
  for (let rest = bytes; ;) {
    // readers skip empty lines before a request (2.2)
    rest = rest.replace(/^[\r\n]+/, '')
    const end = rest.indexOf('\r\n\r\n')
    const [first = '', ...lines] = rest.slice(0, Math.max(0, end)).split('\r\n')
    const [, method = '', target = '', version] = requestLine.exec(first) ?? []
    const fields = readFields(lines)
    if (version === undefined || fields === undefined) return requests
    const [hosts = [], lengths = [], codings = [], upgrade] = [
      'host',
      'content-length',
      'transfer-encoding',
      'upgrade',
    ].map((name) => fields.get(name))
    if (hosts.length > 1 || (hosts.length === 0 && version === 'HTTP/1.1') || lengths.length + codings.length > 1)
      return requests
    const isChunked = version === 'HTTP/1.1' && codings[0]?.toLowerCase() === 'chunked'
    if (codings.length > 0 && !isChunked) return requests
    const after = rest.slice(end + 4)
    const read = isChunked ? readChunks(after) : readSized(after, lengths[0] ?? '0')
    if (read === undefined) return requests
    requests.push({ method, target, body: read.body })
    if (upgrade !== undefined) return requests
    rest = read.rest
  }
}

const methods = ['POST', 'POST', 'GET', 'PUT', 'HEAD', 'OPTIONS', 'DELETE']
const fieldsOfBase = ['', '', 'X-A: b\r\n', 'Connection: close\r\n', 'Connection: Upgrade\r\nUpgrade: h2c\r\n']
const hidden = 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n'
const pieces = [
  '\r\n', '\n', '\r', '\r\n\r\n', ' ', '\t', '\0', '\v', ':', ';', ',', '"', '0', 'f', '+', '-', '0x', '\u0085', '\u00ff',
  'Content-Length: 5\r\n', 'Content-Length: 0\r\n', 'Content-Length:\r\n', ' Content-Length: 3\r\n', 'Host: y\r\n',
  'Transfer-Encoding: chunked\r\n', 'Transfer-Encoding : chunked\r\n', 'Transfer-Encoding: identity\r\n',
  'Transfer-Encoding: chunked, chunked\r\n', 'Connection: close\r\n', 'Connection: keep-alive\r\n', 'X: y\r\n z\r\n',
  'HTTP/1.0', 'HTTP/1.1', 'HTTP/1.2', 'GET ', 'PRI ', '0\r\n\r\n', '1\r\nz\r\n', ';a=b', ';a="b\r\n"', '//', '*', hidden,
  'Expect: 100-continue\r\n', 'Connection: Upgrade\r\nUpgrade: websocket\r\n',
] // prettier-ignore

function writeRequest({ below, pick }: Chance): string {
  const body = pick(['', 'x', 'hello', '0\r\n\r\n', hidden, '5\r\nhello\r\n0\r\n\r\n'])
  const head = `${pick(methods)} /${below(9)} HTTP/1.${pick([1, 1, 1, 0])}\r\nHost: x\r\n${pick(fieldsOfBase)}`
  if (below(2) === 0) return `${head}Content-Length: ${body.length}\r\n\r\n${body}`
  const cut = below(body.length + 1)
  const chunks = [body.slice(0, cut), body.slice(cut)].filter((part) => part !== '')
  const written = chunks.map((part) => `${part.length.toString(16)}${pick(['', ';a', ';a=b'])}\r\n${part}\r\n`)
  return `${head}Transfer-Encoding: chunked\r\n\r\n${written.join('')}0\r\n${pick(['', 'X-T: y\r\n'])}\r\n`
}

/** `start`: gives the port of a server with this listener, which notes each request. */
export async function createHttpTarget(start: (listener: RequestListener) => Promise<number>): Promise<Target> {
  const seen = new Map<number | undefined, (SeenRequest | undefined)[]>()
  const port = await start((req, res) => {
    const list = seen.get(req.socket.remotePort) ?? []
    seen.set(req.socket.remotePort, list)
    const place = list.push(undefined) - 1
    void readBody(req, { limit: 100_000, timeoutMs: 300 }).then(
      (body) => {
        list[place] = toSeen(req, body)
        return res.writeHead(200, { 'content-length': 2 }).end('ok')
      },
      () => res.writeHead(400, { connection: 'close', 'content-length': 0 }).end(),
    )
  })
  return {
    name: 'bytes of HTTP',
    cases: 400,
    async tryOne(chance) {
      const requests = Array.from({ length: 1 + chance.below(3) }, () => writeRequest(chance)).join('')
      const changed = Buffer.from(chance.mutate(requests, pieces, 3), 'latin1').toString('latin1')
      const bytes = `${changed}GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
      const cut = chance.pick([bytes.length, chance.below(bytes.length)])
      const { from, answer } = await sendBytes(port, [bytes.slice(0, cut), bytes.slice(cut)])
      const found = (seen.get(from) ?? []).filter((request) => request !== undefined)
      seen.delete(from)
      if (/^HTTP\/1\.1 5/m.test(answer)) return describeFault('an answer of a fault', { bytes, answer })
      const expected = readStrictly(bytes)
      const isBeginning = found.every((request, at) => JSON.stringify(request) === JSON.stringify(expected[at]))
      return isBeginning
        ? undefined
        : describeFault('other requests than a strict reader sees', { bytes, found, expected })
    },
  }
}

function toSeen({ method = '', url = '' }: IncomingMessage, body: Buffer): SeenRequest {
  return { method, target: url, body: body.toString('latin1') }
}

/** A request that never ends is left after this time. */
const mostWaitMs = 400

async function sendBytes(
  port: number,
  parts: readonly string[],
): Promise<{ from: number | undefined; answer: string }> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let answer = ''
  const closed = new Promise<void>((done) => socket.once('close', () => done()))
  socket.setTimeout(mostWaitMs, () => socket.destroy())
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1'))).on('error', () => socket.destroy())
  await new Promise<void>((done) => socket.once('connect', done))
  const from = socket.localPort
  for (const part of parts) {
    socket.write(Buffer.from(part, 'latin1'))
    // so that the parts are packets of their own
    await new Promise((done) => setImmediate(done))
  }
  await closed
  return { from, answer }
}

/** The port of a server of Node itself, which accepts more than a strict reader: the flawed twin. */
export async function listenAnywhere(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}
