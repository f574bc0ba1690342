// The connections of a port: their maximum number, also for each client, their maximum idle time, and their end at a stop.
import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Peer } from './client.ts'

/**
 * - `all`: a process has some thousands of file descriptors, and each connection needs one.
 * - `perClient`: a sixteenth of `all`. A usual sender has a handful of connections, a large one some dozens; sixteen networks
 *   would have to join to take all.
 * - `loopback`: half of `all`, for all processes of this machine together. A tunnel, or a proxy that is not in
 *   `server.trustedProxies`, connects from loopback and brings many clients.
 * - `idleMs`: more than the time of a head (10 s). It is for connections without a request yet and for those whose answer is not read. Node ends a
 *   slow head, but not a connection that sends blank lines between two requests: that one ends this much later than a kept one.
 */
export const connectionLimits = { all: 4_096, perClient: 256, loopback: 2_048, idleMs: 15_000 }

const warnEveryMs = 60_000

type Connections = {
  /**
   * For the event `connection`. If its client or the port has the maximum already, closes the one that is unused for the longest time, so that kept connections
   * never keep a new one out. If all are in use, closes the new one, without an answer.
   */
  track(socket: Socket): void
  watch(listener: RequestListener): RequestListener
  /**
   * Closes connections without a running request for `idleMs`, and kept ones for `keptMs` longer. A request runs until its answer is complete, and
   * as long as the client reads the answer.
   */
  closeIdle(): void
  /**
   * From now on each connection ends with the answer to its newest request: a busy sender that keeps its connection must not delay
   * the stop. A connection that has sent nothing is closed at once, because Node counts it as busy.
   */
  startClosing(): void
}

/** Connections with a common maximum: all, or those of one client. */
type Group = {
  readonly name: string
  readonly max: number
  count: number
  /** Those whose last answer is sent, unused for the longest time first. */
  readonly kept: Set<Socket>
}

type Connection = {
  readonly groups: readonly Group[]
  /** When a request ran last, or, before the first one, when the connection began. */
  busyAt: number
  /** The unsent bytes at the last call of `closeIdle`. */
  unsent: number
  newest: ServerResponse | undefined
  /** Responses that are not sent completely yet. */
  readonly open: Set<ServerResponse>
}

/**
 * `peerOf`: the client of a connection; undefined for a trusted proxy. `keptMs`: how long a connection is kept after an answer. `now`: milliseconds. `warn`:
 * logs a client with too many.
 */
export function createConnections(options: {
  readonly peerOf: (remoteAddress: string | undefined) => Peer | undefined
  readonly keptMs: number
  readonly now: () => number
  readonly warn: (text: string) => void
}): Connections {
  const { peerOf, keptMs, now, warn } = options
  const { idleMs } = connectionLimits
  const connections = new Map<Socket, Connection>()
  const everybody: Group = { name: 'This port', max: connectionLimits.all, count: 0, kept: new Set() }
  const clients = new Map<string, Group>()
  let isClosing = false
  let warnedAt = Number.NEGATIVE_INFINITY

  /** The client first: it makes room among its own connections before it takes that of others. */
  function findGroups(peer: Peer | undefined): Group[] {
    if (peer === undefined) return [everybody]
    const max = peer.isLoopback ? connectionLimits.loopback : connectionLimits.perClient
    const name = `The client ${peer.client}`
    return [clients.get(name) ?? { name, max, count: 0, kept: new Set() }, everybody]
  }

  /** Returns false if the group has its maximum and all of it is in use. */
  function makeRoom({ name, max, count, kept }: Group): boolean {
    if (count < max) return true
    const [unused] = kept
    if (unused !== undefined) {
      forget(unused)
      unused.destroy()
      return true
    }
    // a line for each connection would fill the disk
    if (now() - warnedAt > warnEveryMs) {
      warnedAt = now()
      warn(`${name} has more than ${max} connections. Further ones are closed.`)
    }
    return false
  }

  function remember(socket: Socket, groups: readonly Group[]): void {
    connections.set(socket, { groups, busyAt: now(), unsent: 0, newest: undefined, open: new Set() })
    for (const group of groups) {
      group.count++
      if (group !== everybody) clients.set(group.name, group)
    }
  }

  function forget(socket: Socket): void {
    const { groups = [] } = connections.get(socket) ?? {}
    connections.delete(socket)
    for (const group of groups) {
      group.count--
      group.kept.delete(socket)
      if (group.count === 0) clients.delete(group.name)
    }
  }

  return {
    track(socket) {
      const groups = findGroups(peerOf(socket.remoteAddress))
      // no answer: it would cost as much as the limit saves
      if (!groups.every(makeRoom)) return void socket.destroy()
      remember(socket, groups)
      socket.once('close', () => forget(socket))
    },
    watch: (listener) => (req, res) => {
      const { socket } = req
      const connection = connections.get(socket)
      // the socket was closed to make room, or as one too many, after Node had read a request from it
      if (connection === undefined) return
      if (isClosing) res.setHeader('connection', 'close')
      connection.busyAt = now()
      connection.newest = res
      connection.open.add(res)
      for (const { kept } of connection.groups) kept.delete(socket)
      res.once('close', () => {
        connection.open.delete(res)
        connection.busyAt = now()
        if (connection.open.size > 0 || !connections.has(socket)) return
        for (const { kept } of connection.groups) kept.add(socket)
      })
      listener(req, res)
    },
    closeIdle() {
      for (const [socket, connection] of connections) {
        const { newest, open } = connection
        const unsent = countUnsentBytes(socket)
        const isRead = unsent < connection.unsent
        connection.unsent = unsent
        const isKept = newest !== undefined && open.size === 0
        if (isRead || [...open].some((res) => !res.writableEnded)) connection.busyAt = now()
        else if (now() - connection.busyAt > (isKept ? keptMs + idleMs : idleMs)) socket.destroy()
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
