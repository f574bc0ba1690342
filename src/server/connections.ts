// The connections of a port: how many a client may have, how long one may stay without a request, and how they end at a stop.
import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Peer } from './client.ts'

/**
 * - `all`: a process has some thousands of descriptors, and each connection takes one.
 * - `perClient`: a sixteenth of them. A sender of webhooks has a handful open, a large one some dozens; sixteen networks would
 *   have to join to take all.
 * - `loopback`: half of them, for all processes of this machine together. A tunnel or a proxy that nobody named in
 *   `server.trustedProxies` comes from there, and brings many clients.
 * - `idleMs`: the time of a kept connection (5 s) and of a head (10 s). Node ends a head that drips; blank lines between two
 *   requests belong to no head, and would keep a connection for ever.
 */
export const connectionLimits = { all: 4_096, perClient: 256, loopback: 2_048, idleMs: 15_000 }

const tellEveryMs = 60_000

export type Connections = {
  /** For `connection`. Closes it without an answer when its client has too many. */
  track(socket: Socket): void
  watch(listener: RequestListener): RequestListener
  /** Closes the connections that have had no request at work for `idleMs`. An answer that the client does not read is no work. */
  closeIdle(): void
  /**
   * From now on each connection ends with the answer to its newest request, so that those before it are sent too: a busy
   * sender that kept its connection would keep the gateway up. One that has sent nothing ends at once: Node takes it for a busy one.
   */
  beginEnding(): void
}

type Connection = {
  readonly peer: Peer | undefined
  /** When a request was last at work, or the connection began. */
  busyAt: number
  newest: ServerResponse | undefined
  /** Responses that are not out yet. */
  readonly open: Set<ServerResponse>
}

/** `peerOf`: whose connection it is; undefined for a trusted proxy. `now` in milliseconds. `warn` is told of a full client. */
export function createConnections(options: {
  readonly peerOf: (remoteAddress: string | undefined) => Peer | undefined
  readonly now: () => number
  readonly warn: (text: string) => void
}): Connections {
  const { peerOf, now, warn } = options
  const connections = new Map<Socket, Connection>()
  const counts = new Map<string, number>()
  let hasBegun = false
  let toldAt = Number.NEGATIVE_INFINITY

  /** False: the client has as many as it may. */
  function count({ client, isLoopback }: Peer): boolean {
    const before = counts.get(client) ?? 0
    const most = isLoopback ? connectionLimits.loopback : connectionLimits.perClient
    if (before < most) {
      counts.set(client, before + 1)
      return true
    }
    // a line for each would fill the disk
    if (now() - toldAt > tellEveryMs) {
      toldAt = now()
      warn(`The client ${client} has more than ${most} connections. Further ones are closed.`)
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
      // an answer would cost what this limit saves
      if (peer !== undefined && !count(peer)) return void socket.destroy()
      connections.set(socket, { peer, busyAt: now(), newest: undefined, open: new Set() })
      socket.once('close', () => forget(socket, peer))
    },
    watch: (listener) => (req, res) => {
      const connection = connections.get(req.socket)
      // it was closed as one too many, with a request already read
      if (connection === undefined) return
      if (hasBegun) res.setHeader('connection', 'close')
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
        const isAtWork = [...connection.open].some((res) => !res.writableEnded)
        if (isAtWork) connection.busyAt = now()
        else if (now() - connection.busyAt > connectionLimits.idleMs) socket.destroy()
      }
    },
    beginEnding() {
      hasBegun = true
      for (const [socket, { newest, open }] of connections) {
        if (newest !== undefined && open.has(newest) && !newest.headersSent) newest.setHeader('connection', 'close')
        if (socket.bytesRead === 0) socket.destroy()
      }
    },
  }
}
