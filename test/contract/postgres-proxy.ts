// A proxy between a gateway and Postgres that behaves like a bad network: it cuts connections, loses answers, or refuses connections.
import { connect, createServer, type Server, type Socket } from 'node:net'
import { onFileEnd } from '../file-end.ts'

export type Proxy = {
  /** The URL of the database through this proxy. */
  readonly url: string
  /** Cuts each new connection after this number of bytes from the server. Undefined: cuts none. */
  cutAfter(bytes: number | undefined): void
  /** True: discards all bytes from the server. */
  loseAnswers(isLost: boolean): void
  /** Cuts the connection of the next transaction that sends this text, when the server has committed it, and discards that answer. Resolves then. */
  loseCommitOf(text: string): Promise<void>
  /** Refuses new connections, and cuts all others. */
  close(): Promise<void>
  open(): Promise<void>
  /** Resolves when `cutAfter` cuts the next connection. */
  waitForCut(): Promise<void>
  /** The number of connections since the proxy was created. */
  countConnections(): number
  /** The maximum number of bytes that the server sent over one connection. */
  maxBytes(): number
}

/** ReadyForQuery outside of a transaction: whatever the client began has ended. */
const committed = Buffer.from('Z\0\0\0\u0005I')

/** Creates a proxy, which is closed at the end of the test file. */
export async function createProxy(url: string): Promise<Proxy> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let limit: number | undefined
  let isLosing = false
  let count = 0
  let most = 0
  const cutting: (() => void)[] = []
  const losing = new Map<string, () => void>()

  function cut(near: Socket): void {
    near.destroy()
    for (const done of cutting.splice(0)) done()
  }

  function forward(near: Socket): void {
    const far = connect(Number(port || 5432), hostname)
    const ownLimit = limit
    let received = 0
    count += 1
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket
        .on('error', () => undefined)
        .on('close', () => {
          sockets.delete(socket)
          near.destroy()
          far.destroy()
        })
    }
    if (ownLimit === 0) cut(near)
    let lost: string | undefined
    near.on('data', (bytes: Buffer) => {
      lost ??= [...losing.keys()].find((text) => bytes.includes(text))
    })
    near.pipe(far)
    far.on('data', (bytes: Buffer) => {
      if (isLosing) return
      if (lost !== undefined && bytes.includes(committed)) {
        near.destroy()
        losing.get(lost)?.()
        losing.delete(lost)
        return
      }
      const rest = ownLimit === undefined ? bytes : bytes.subarray(0, Math.max(0, ownLimit - received))
      received += bytes.length
      most = Math.max(most, received)
      const isOver = ownLimit !== undefined && received >= ownLimit
      near.write(rest, () => void (isOver && cut(near)))
    })
  }

  let server: Server | undefined
  const startListening = (at: number) =>
    new Promise<number>((done) => {
      const next = createServer(forward).listen(at, '127.0.0.1', () => {
        const address = next.address()
        done(typeof address === 'object' && address !== null ? address.port : 0)
      })
      server = next
    })
  const shut = async () => {
    const closed = new Promise((done) => (server === undefined ? done(undefined) : server.close(done)))
    server = undefined
    for (const socket of sockets) socket.destroy()
    await closed
  }
  const own = await startListening(0)
  onFileEnd(shut)
  return {
    url: url.replace(/@[^/]*\//, `@127.0.0.1:${own}/`),
    cutAfter: (bytes) => void (limit = bytes),
    loseAnswers: (isLost) => void (isLosing = isLost),
    loseCommitOf: (text) => new Promise((done) => void losing.set(text, done)),
    close: shut,
    open: async () => void (await startListening(own)),
    waitForCut: () => new Promise((done) => void cutting.push(done)),
    countConnections: () => count,
    maxBytes: () => most,
  }
}
