// A proxy between a gateway and Postgres, which behaves like a bad network: it cuts, it loses answers, it refuses.
import { connect, createServer, type Server, type Socket } from 'node:net'
import { onFileEnd } from '../file-end.ts'

export type Proxy = {
  /** The URL of the database through this proxy. */
  readonly url: string
  /** From now on, each new connection is cut after so many bytes from the server. Undefined: never. */
  cutAfter(bytes: number | undefined): void
  /** True: all bytes from the server are lost, and do not arrive later. */
  loseAnswers(isLost: boolean): void
  /** Stops listening, and cuts all connections. */
  shut(): Promise<void>
  open(): Promise<void>
  /** Resolves when the next connection is cut by `cutAfter`. */
  nextCut(): Promise<void>
  /** New connections since the proxy was made. */
  connections(): number
  /** The most bytes that a server sent over one connection. */
  maxBytes(): number
}

/** Closed at the end of the test file. */
export async function createProxy(url: string): Promise<Proxy> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let limit: number | undefined
  let isLosing = false
  let count = 0
  let most = 0
  const cutting: (() => void)[] = []

  function cut(near: Socket): void {
    near.destroy()
    for (const done of cutting.splice(0)) done()
  }

  function pass(near: Socket): void {
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
    near.pipe(far)
    far.on('data', (bytes: Buffer) => {
      if (isLosing) return
      const rest = ownLimit === undefined ? bytes : bytes.subarray(0, Math.max(0, ownLimit - received))
      received += bytes.length
      most = Math.max(most, received)
      const isOver = ownLimit !== undefined && received >= ownLimit
      near.write(rest, () => void (isOver && cut(near)))
    })
  }

  let server: Server | undefined
  const listen = (at: number) =>
    new Promise<number>((done) => {
      const next = createServer(pass).listen(at, '127.0.0.1', () => {
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
  const own = await listen(0)
  onFileEnd(shut)
  return {
    url: url.replace(/@[^/]*\//, `@127.0.0.1:${own}/`),
    cutAfter: (bytes) => void (limit = bytes),
    loseAnswers: (isLost) => void (isLosing = isLost),
    shut,
    open: async () => void (await listen(own)),
    nextCut: () => new Promise((done) => void cutting.push(done)),
    connections: () => count,
    maxBytes: () => most,
  }
}
