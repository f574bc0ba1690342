// Requests that Node's parser makes from bytes without a network, so that a stage of the pipe can be measured alone.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import { createEventBody } from './events.ts'

export type Received = {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Resolves when the answer has been passed to the connection. */
  readonly sent: Promise<void>
}

/** Returns a function that makes several complete, unread requests of one connection. They must be answered in order. */
export function createRequests(given: { path: string; token: string; bytes: number }) {
  const body = createEventBody(given.bytes, 2)
  const head = Buffer.from(
    `POST ${given.path} HTTP/1.1\r\nhost: 127.0.0.1:8790\r\nauthorization: Bearer ${given.token}\r\n` +
      `content-type: application/json\r\nuser-agent: hookloom-bench\r\ncontent-length: ${body.bytes.length}\r\n\r\n`,
  )
  let serial = 0
  let received: Received[] = []
  let onComplete = () => {}
  let wanted = 0
  const server = createServer((req, res) => {
    received.push({ req, res, sent: new Promise((resolve) => void res.once('finish', resolve)) })
    if (received.length === wanted) onComplete()
  })

  return async (count: number): Promise<Received[]> => {
    received = []
    wanted = count
    const complete = new Promise<void>((resolve) => {
      onComplete = resolve
    })
    const connection = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() })
    // the gateway reads the address of each connection
    server.emit('connection', Object.assign(connection, { remoteAddress: '127.0.0.1' }))
    for (let index = 0; index < count; index += 1) {
      serial += 1
      body.renumber(serial)
      connection.push(Buffer.concat([head, body.bytes]))
    }
    await complete
    // the last body is parsed one turn of the event loop after its head
    await new Promise(setImmediate)
    return received
  }
}
