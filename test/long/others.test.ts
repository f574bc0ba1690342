// What others lose of what they have acknowledged, after kills and on the disks that power-loss.test.ts leaves of Hookloom: message stores that run beside
// an agent. They are installed by their packages; without them, or without strace, the cases are skipped.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { configurePeer, findPeer } from '../bench/peers.ts'
import { count } from '../counts.ts'
import { freePort, makeFolder } from '../e2e/gateway.ts'
import { createDice } from '../e2e/load.ts'
import { onFileEnd } from '../file-end.ts'
import { seed } from '../seed.ts'
import { losePower, readHistory, straceOptions } from './disk-history.ts'

type Peer = {
  /** Undefined: it is not installed. */
  readonly command: readonly [string, ...string[]] | undefined
  /** Whether its documentation says that a message is on disk before it is acknowledged. */
  readonly flushes: boolean
  readonly args: (place: { dir: string; port: number }) => readonly string[]
  /** Sent first on each connection; empty for nothing. `lane`: the number of the connection. */
  readonly hello: (lane: number) => string
  /** Sent once; empty for nothing. */
  readonly create: string
  readonly add: (lane: number) => string
  /** Finds the id in an acknowledgement. */
  readonly answer: RegExp
  /** Whether a file is the log of messages. */
  readonly isLog: (file: string) => boolean
  /** Asks for the stored messages, over the connection 0. */
  readonly ask: string
  readonly isWhole: (reply: string) => boolean
  readonly listIds: (reply: string, acknowledged: readonly string[]) => readonly string[]
}

const text = 'x'.repeat(1_000)
const bulk = (...words: readonly string[]) =>
  `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`

const isInstalled = (program: string) => spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
function findProgram(program: string): Peer['command'] {
  return isInstalled(program) ? [program] : undefined
}

const redis = (fsync: 'everysec' | 'always'): Peer => ({
  command: findProgram('redis-server'),
  flushes: fsync === 'always',
  args: ({ dir, port }) => {
    const options = { port: `${port}`, bind: '127.0.0.1', dir, save: '', appendonly: 'yes', appendfsync: fsync }
    return Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
  },
  hello: () => '',
  create: '',
  add: () => bulk('XADD', 'hooks', '*', 'text', text),
  answer: /\$\d+\r\n(\d+-\d+)\r\n/,
  isLog: (file) => file.endsWith('.incr.aof'),
  ask: bulk('XRANGE', 'hooks', '-', '+') + bulk('PING'),
  isWhole: (reply) => reply.endsWith('+PONG\r\n') || reply.includes('-LOADING'),
  listIds: (reply) => Array.from(reply.matchAll(/^(\d+-\d+)\r$/gm), ([, id = '']) => id),
})

/** https://docs.nats.io/reference/reference-protocols/nats-protocol */
const publish = (subject: string, body: string, lane = 0) =>
  `PUB ${subject} _INBOX.${lane} ${body.length}\r\n${body}\r\n`
const stream = { name: 'hooks', subjects: ['in'], storage: 'file', retention: 'limits', num_replicas: 1 }
const nats: Peer = {
  command: findProgram('nats-server'),
  // https://docs.nats.io/running-a-nats-service/configuration: sync_interval is two minutes
  flushes: false,
  args: ({ dir, port }) => ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', dir],
  hello: (lane) => `CONNECT {"verbose":false}\r\nSUB _INBOX.${lane} 1\r\nPING\r\n`,
  create: publish('$JS.API.STREAM.CREATE.hooks', JSON.stringify(stream)),
  add: (lane) => publish('in', text, lane),
  answer: /"stream":"hooks", *"seq":(\d+)/,
  isLog: (file) => file.endsWith('.blk'),
  ask: publish('$JS.API.STREAM.INFO.hooks', ''),
  isWhole: (reply) => /MSG _INBOX[^]*\}\r\n$/.test(reply),
  listIds(reply, acknowledged) {
    const { state = { last_seq: 0 } } = JSON.parse(/\{.*\}/s.exec(reply.slice(reply.indexOf('MSG ')))?.[0] ?? '{}')
    return acknowledged.filter((id) => Number(id) <= Number(state.last_seq))
  },
}

const http = (method: string, body = '') =>
  `${method} /hooks/bench HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const isHead = (reply: string) => reply.endsWith('\r\n\r\n')
/** Offsets have a fixed length, so they are compared as texts. */
const offset = /Stream-Next-Offset: (\d+_\d+)/i
const durableStreams: Peer = {
  command: findPeer('durable-streams')?.command,
  // https://durablestreams.com: an append is acknowledged after fdatasync
  flushes: true,
  args: ({ dir, port }) => configurePeer('durable-streams', { dir, port, token: '' }).args,
  hello: () => '',
  create: http('PUT'),
  add: () => http('POST', JSON.stringify({ text })),
  answer: offset,
  isLog: (file) => file.endsWith('.log'),
  ask: http('HEAD'),
  isWhole: isHead,
  listIds: (reply, acknowledged) => acknowledged.filter((id) => id <= (offset.exec(reply)?.[1] ?? '')),
}

const peers: readonly (readonly [string, Peer])[] = [
  ['Redis Streams with appendfsync everysec', redis('everysec')],
  ['Redis Streams with appendfsync always', redis('always')],
  ['NATS JetStream with its defaults', nats],
  ['Durable Streams with its defaults', durableStreams],
]

const messages = 400
const losses = 200
const kills = 5

async function start(peer: Peer, dir: string): Promise<{ child: ChildProcess; port: number } | undefined> {
  const [program, ...first] = peer.command ?? ['']
  const port = await freePort()
  const child = spawn(program, [...first, ...peer.args({ dir, port })], { stdio: 'ignore' })
  onFileEnd(() => child.kill('SIGKILL'))
  for (let tries = 0; tries < 600 && child.exitCode === null; tries += 1) {
    const socket = await open(port)
    socket?.destroy()
    if (socket !== undefined) return { child, port }
    await pause(20)
  }
  child.kill('SIGKILL')
  return undefined
}

function open(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.on('error', () => resolve(undefined))
  })
}

/** Sends one request, and returns what came until the reply is whole, or the connection ends. */
async function talk(socket: Socket, request: string, isWhole: (reply: string) => boolean): Promise<string> {
  let reply = ''
  return new Promise((resolve) => {
    const onData = (data: Buffer) => {
      reply += data.toString('latin1')
      if (!isWhole(reply)) return
      socket.off('data', onData).off('close', onClose)
      resolve(reply)
    }
    const onClose = () => resolve(reply)
    socket.on('data', onData).on('close', onClose)
    socket.write(request)
  })
}

/** A connection that may be used; undefined if the store has ended. */
async function greet(peer: Peer, port: number, lane: number): Promise<Socket | undefined> {
  const socket = await open(port)
  if (socket !== undefined && peer.hello(lane) !== '')
    await talk(socket, peer.hello(lane), (reply) => reply.includes('PONG'))
  return socket
}

/** Adds messages one after the other over each of eight connections, until there are enough or the store ends. */
async function load(peer: Peer, port: number, wanted: number): Promise<string[]> {
  const acknowledged: string[] = []
  const findId = (reply: string) => peer.answer.exec(reply)?.[1]
  const add = async (lane: number) => {
    const socket = await greet(peer, port, lane)
    if (socket === undefined) return
    while (acknowledged.length < wanted && !socket.destroyed) {
      const id = findId(await talk(socket, peer.add(lane), (reply) => findId(reply) !== undefined))
      if (id === undefined) break
      acknowledged.push(id)
    }
    socket.destroy()
  }
  await Promise.all(Array.from({ length: 8 }, async (_, lane) => add(lane)))
  return acknowledged
}

/** The acknowledged messages that a store on this disk has lost; undefined if it does not start. */
async function countLost(peer: Peer, dir: string, acknowledged: readonly string[]): Promise<number | undefined> {
  const running = await start(peer, dir)
  if (running === undefined) return undefined
  let reply = '-LOADING'
  while (reply.includes('-LOADING')) {
    // a new connection each time: it has no answer of the last question
    const socket = await greet(peer, running.port, 0)
    if (socket === undefined) return undefined
    reply = await talk(socket, peer.ask, peer.isWhole)
    socket.destroy()
    // Redis listens before it reads its log, and ends if it cannot
    if (!peer.isWhole(reply)) return undefined
  }
  running.child.kill('SIGKILL')
  const kept = new Set(peer.listIds(reply, acknowledged))
  return acknowledged.filter((id) => !kept.has(id)).length
}

const listFiles = (dir: string) =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((file) => statSync(file).isFile())

describe.each(peers)('%s', (name, peer) => {
  const create = async (dir: string) => {
    const running = await start(peer, dir)
    if (running === undefined) throw new Error(`${name} does not start`)
    const socket = await greet(peer, running.port, 0)
    if (peer.create !== '' && socket) await talk(socket, peer.create, peer.isWhole)
    socket?.destroy()
    return running
  }

  test.skipIf(peer.command === undefined)(
    `what ${kills} kills lose is counted`,
    { timeout: 300_000 },
    async (context) => {
      let [all, lost] = [0, 0]
      for (let round = 0; round < kills; round += 1) {
        const dir = makeFolder()
        const { child, port } = await create(dir)
        const loading = load(peer, port, Infinity)
        await pause(500 + 200 * round)
        child.kill('SIGKILL')
        const acknowledged = await loading
        all += acknowledged.length
        lost += (await countLost(peer, dir, acknowledged)) ?? acknowledged.length
      }
      count(context, { 'of others': all, 'lost by others': lost, 'kills of others': kills })
      expect(all).toBeGreaterThan(kills)
    },
  )

  test.skipIf(peer.command === undefined || !isInstalled('strace'))(
    `what ${losses} losses of power lose is counted`,
    { timeout: 600_000 },
    async (context) => {
      const dir = makeFolder()
      const { child, port } = await create(dir)
      await load(peer, port, 1)
      const log = listFiles(dir).find(peer.isLog) ?? ''
      const before = makeFolder()
      cpSync(dir, before, { recursive: true })
      const calls = join(makeFolder(), 'calls')
      const tracer = spawn('strace', [...straceOptions(calls), '-p', `${child.pid}`], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      await new Promise((resolve) => tracer.stderr.once('data', resolve))
      await load(peer, port, messages)
      tracer.kill('SIGINT')
      await vi.waitUntil(() => tracer.exitCode !== null || tracer.signalCode !== null, { timeout: 60_000 })
      child.kill('SIGKILL')

      const folder = dirname(log)
      const history = readHistory(readFileSync(calls, 'utf8').split('\n'), (file) => file === log, {
        answer: peer.answer,
        before: [
          { kind: 'create', file: folder },
          { kind: 'create', file: log },
          { kind: 'write', file: log, offset: 0, data: readFileSync(join(before, log.slice(dir.length))) },
          ...[log, dirname(folder), folder].map((file) => ({ kind: 'sync' as const, file, began: Infinity })),
        ],
      })
      const acknowledged = history.filter(({ kind }) => kind === 'answer').length
      const found: (number | undefined)[] = []
      const left = makeFolder()
      for (const { answered, write } of losePower(history, { folder, count: losses, pick: createDice(seed) })) {
        rmSync(left, { recursive: true, force: true })
        cpSync(before, left, { recursive: true })
        write(join(left, folder.slice(dir.length)))
        found.push(await countLost(peer, left, [...answered]))
      }
      const lost = found.filter((each) => each !== undefined)
      const lossy = lost.filter((each) => each > 0)
      count(context, {
        'of others': acknowledged,
        'losses of power of others': found.length,
        'that lose acknowledged messages': lossy.length,
        'at most': Math.max(0, ...lossy),
        'that do not start': found.length - lost.length,
      })
      expect(acknowledged).toBeGreaterThanOrEqual(messages)
      // otherwise these disks prove nothing about a store that loses none
      expect(lossy.length > 0).toBe(!peer.flushes)
    },
  )
})
