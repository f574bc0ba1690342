// The connections of a port: their maximum number for each client, their maximum idle time, and their end at a stop.
import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Peer } from './client.ts'

/**
 * - `all`: a process has some thousands of file descriptors, and each connection needs one.
 * - `perClient`: a sixteenth of `all`. A usual sender has a handful of connections, a large one some dozens; sixteen networks
 *   would have to join to take all.
 * - `loopback`: half of `all`, for all processes of this machine together. A tunnel, or a proxy that is not in
 *   `server.trustedProxies`, connects from loopback and brings many clients.
 * - `idleMs`: more than the time of a kept connection (5 s) and of a head (10 s). Node ends a slow head, but not a connection
 *   that sends blank lines between two requests.
 */
export const connectionLimits = { all: 4_096, perClient: 256, loopback: 2_048, idleMs: 15_000 }

const warnEveryMs = 60_000

type Connections = {
  /** For the event `connection`. Closes the socket without an answer if its client has too many. */
  track(socket: Socket): void
  watch(listener: RequestListener): RequestListener
  /**
   * Closes connections without a running request for `idleMs`. A request runs until its answer is complete, and as long as the client reads the
   * answer.
   */
  closeIdle(): void
  /**
   * From now on each connection ends with the answer to its newest request: a busy sender that keeps its connection must not delay
   * the stop. A connection that has sent nothing is closed at once, because Node counts it as busy.
   */
  startClosing(): void
}

type Connection = {
  readonly peer: Peer | undefined
  /** When a request ran last, or, before the first one, when the connection began. */
  busyAt: number
  /** The unsent bytes at the last call of `closeIdle`. */
  unsent: number
  newest: ServerResponse | undefined
  /** Responses that are not sent completely yet. */
  readonly open: Set<ServerResponse>
}

/** `peerOf`: the client of a connection; undefined for a trusted proxy. `now`: milliseconds. `warn`: logs a client with too many. */
export function createConnections(options: {
  readonly peerOf: (remoteAddress: string | undefined) => Peer | undefined
  readonly now: () => number
  readonly warn: (text: string) => void
}): Connections {
  const { peerOf, now, warn } = options
  const connections = new Map<Socket, Connection>()
  const counts = new Map<string, number>()
  let isClosing = false
  let warnedAt = Number.NEGATIVE_INFINITY

  /** Returns false if the client has its maximum. */
  function count({ client, isLoopback }: Peer): boolean {
    const before = counts.get(client) ?? 0
    const max = isLoopback ? connectionLimits.loopback : connectionLimits.perClient
    if (before < max) {
      counts.set(client, before + 1)
      return true
    }
    // a line for each connection would fill the disk
    if (now() - warnedAt > warnEveryMs) {
      warnedAt = now()
      warn(`The client ${client} has more than ${max} connections. Further ones are closed.`)
    }
    return false
  }

  function forget(socket: Socket, peer: Peer | undefined): void {
    connections.delete(socket)
    if (peer === undefined) return
    const left = (counts.get(peer.client) ?? 1) - 1
    if (left === 0) counts.delete(peer.client)
    else counts.set(peer.client, left)
  }

  return {
    track(socket) {
      const peer = peerOf(socket.remoteAddress)
      // no answer: it would cost as much as the limit saves
      if (peer !== undefined && !count(peer)) return void socket.destroy()
      connections.set(socket, { peer, busyAt: now(), unsent: 0, newest: undefined, open: new Set() })
      socket.once('close', () => forget(socket, peer))
    },
    watch: (listener) => (req, res) => {
      const connection = connections.get(req.socket)
      // the socket was closed as one too many after Node had read a request from it
      if (connection === undefined) return
      if (isClosing) res.setHeader('connection', 'close')
      connection.busyAt = now()
      connection.newest = res
      connection.open.add(res)
      res.once('close', () => {
        connection.open.delete(res)
        connection.busyAt = now()
      })
      listener(req, res)
    },
    closeIdle() {
      for (const [socket, connection] of connections) {
        const unsent = countUnsentBytes(socket)
        const isRead = unsent < connection.unsent
        connection.unsent = unsent
        if (isRead || [...connection.open].some((res) => !res.writableEnded)) connection.busyAt = now()
        else if (now() - connection.busyAt > connectionLimits.idleMs) socket.destroy()
      }
    },
    startClosing() {
      isClosing = true
      for (const [socket, { newest, open }] of connections) {
        if (newest !== undefined && open.has(newest) && !newest.headersSent) newest.setHeader('connection', 'close')
        if (socket.bytesRead === 0) socket.destroy()
      }
    },
  }
}

/** The bytes that the client has not taken yet. `writableLength` counts a text as a whole until its last byte is sent. */
function countUnsentBytes(socket: Socket): number {
  // Node has no public name for it, and reads it itself to find out whether a socket is idle (`Socket._onTimeout`)
  const handle: { readonly writeQueueSize?: number } | null | undefined = Reflect.get(socket, '_handle')
  return handle?.writeQueueSize ?? 0
}
