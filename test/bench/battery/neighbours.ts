// The rows about good requests beside others: a busy sender, refused requests, and connections that do nothing or are slow.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { LoadResult } from '../load.ts'
import type { Figures } from '../probes.ts'
import { computeMedian } from '../statistics.ts'
import { type RowOptions, type Stage, toWake, withStage } from './stage.ts'

/** Alone and beside in turn, so that noise of the machine affects both. */
const pairs = 5

/** Measures good requests alone and beside others, in pairs. `measureBeside` gets the function that sends the good ones. */
async function comparePairs(
  sendGood: () => Promise<LoadResult>,
  measureBeside: (sendGood: () => Promise<LoadResult>) => Promise<LoadResult>,
): Promise<Figures> {
  const alone: LoadResult[] = []
  const beside: LoadResult[] = []
  for (let pair = 0; pair < pairs; pair += 1) {
    alone.push(await sendGood())
    beside.push(await measureBeside(sendGood))
  }
  const computeMedianOf = (results: readonly LoadResult[], key: 'p50Ms' | 'p99Ms' | 'lateMs') =>
    computeMedian(results.map((result) => result[key]))
  return {
    alone: computeMedianOf(alone, 'p99Ms'),
    beside: computeMedianOf(beside, 'p99Ms'),
    ratio: computeMedianOf(beside, 'p99Ms') / computeMedianOf(alone, 'p99Ms'),
    'alone p50': computeMedianOf(alone, 'p50Ms'),
    'beside p50': computeMedianOf(beside, 'p50Ms'),
    late: computeMedianOf(beside, 'lateMs'),
  }
}

/** L6 */
export function measureNoisyNeighbour(options: RowOptions): Promise<Figures> {
  const seconds = (options.seconds * 2) / pairs
  return withStage({ ...options, mappings: [toWake('quiet')] }, async ({ send, sendBeside }) => {
    const sendQuiet = () => send({ path: '/hooks/quiet', client: '10.1.0.2', perSecond: 5, connections: 4, seconds })
    const busy = { client: '10.1.0.1', perSecond: 2_000, connections: 64, isPatient: true, seconds }
    const served: number[] = []
    const figures = await comparePairs(sendQuiet, async (sendGood) => {
      const [good, noisy] = await Promise.all([sendGood(), sendBeside(busy)])
      served.push(noisy.answered / noisy.tookSeconds)
      return good
    })
    return { ...figures, noisy: computeMedian(served) }
  })
}

/** L9 */
export function measureBadTraffic(options: RowOptions): Promise<Figures> {
  const seconds = options.seconds / pairs
  return withStage(options, async ({ gateway, send, sendBeside }) => {
    const sendGood = () => send({ client: '10.2.0.1', perSecond: 50, connections: 16, seconds })
    const bad = { isBad: true, perSecond: 450, connections: 64, isPatient: true, seconds }
    let [refused, others, logged] = [0, 0, 0]
    const figures = await comparePairs(sendGood, async () => {
      const before = gateway.countLogBytes()
      const [good, answered] = await Promise.all([sendGood(), sendBeside(bad)])
      refused += answered.answered
      others += answered.others
      logged += gateway.countLogBytes() - before
      return good
    })
    return { ...figures, refused, others, perRequest: logged / (seconds * pairs * 500) }
  })
}

const idleConnections = 2_000
const slowConnections = 200

/** L13 */
export function measureHeldConnections(options: RowOptions): Promise<Figures> {
  const seconds = options.seconds / pairs
  return withStage(options, async ({ gateway, send }) => {
    const sendGood = () => send({ client: '10.3.0.1', perSecond: 200, connections: 16, seconds })
    let [kept, ended] = [0, 0]
    const figures = await comparePairs(sendGood, async () => {
      const idle = await Promise.all(Array.from({ length: idleConnections }, () => openIdle(gateway)))
      const slow = createSlowConnections(gateway.port)
      await pause(500)
      const good = await sendGood()
      kept = idle.filter((socket) => !socket.destroyed).length
      ended += slow.countEnded()
      slow.end()
      for (const socket of idle) socket.destroy()
      return good
    })
    return { ...figures, kept, ended }
  })
}

/** A connection that has had an answer, and is kept. */
async function openIdle({ port }: Stage['gateway']): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => socket.destroy())
  socket.write('GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
  await once(socket, 'data')
  // without a reader, its end would not be noticed
  return socket.resume()
}

/** Connections that send a byte of a head each second. The gateway ends one after ten seconds, and it is opened again. */
function createSlowConnections(port: number): { countEnded(): number; end(): void } {
  let ended = 0
  const sockets = Array.from({ length: slowConnections }, open)
  function open(): Socket {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('error', () => socket.destroy())
    socket.write('POST /hooks/event HTTP/1.1\r\nx-slow: ')
    return socket.resume()
  }
  const timer = setInterval(() => {
    for (const [index, socket] of sockets.entries()) {
      if (!socket.destroyed) {
        socket.write('x')
        continue
      }
      ended += 1
      sockets[index] = open()
    }
  }, 1_000)
  return {
    countEnded: () => ended,
    end() {
      clearInterval(timer)
      for (const socket of sockets) socket.destroy()
    },
  }
}
