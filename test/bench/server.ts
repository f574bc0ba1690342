// A process that runs one of the benched servers and reports the resources that the server used.
import { existsSync, readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAppendEach, createBareHttp, createBareKoa, createInsertEach } from './baselines.ts'
import { type GatewayOptions, startGateway } from './gateway.ts'
import { type PeerKind, type RunningPeer, startPeer } from './peers.ts'

export type ServerOptions = Omit<GatewayOptions, 'store'> & {
  readonly kind: 'sqlite' | 'single' | 'memory' | 'postgres' | 'insert' | 'append' | 'koa' | 'http' | PeerKind
}

export type ServerRequest = 'usage' | 'heap' | 'admin port' | 'main thread' | 'empty' | 'jobs' | 'queued' | 'stop'
/**
 * `usage`: microseconds of processor time of all threads, and of the processes of a peer. `main thread`: that of this thread alone; 0 for a
 * peer, and if the system does not show it. `jobs`: the number of finished jobs. `queued`: the number of waiting jobs. `heap`: the bytes of
 * JavaScript objects and of buffers. `empty`, `stop`: the port. A peer must be stopped before its server ends.
 */
export type ServerReply = { readonly result: number } | { readonly failure: string }

type Served = {
  readonly port: number
  readonly adminPort?: number
  empty(): void
  countDoneJobs(): Promise<number>
  countQueuedJobs(): Promise<number>
  readonly peer?: RunningPeer
}

async function serve(options: ServerOptions): Promise<Served> {
  switch (options.kind) {
    case 'sqlite':
    case 'single':
    case 'memory':
    case 'postgres':
      return startGateway({ ...options, store: options.kind })
    case 'insert':
      return listen(createInsertEach(options))
    case 'append':
      return listen(createAppendEach(options))
    case 'koa':
      return listen(createBareKoa())
    case 'http':
      return listen(createBareHttp())
    default: {
      const peer = await startPeer(options.kind, options)
      return { ...nothingKept, port: peer.port, peer }
    }
  }
}

const nothingKept = { empty: () => {}, countDoneJobs: async () => 0, countQueuedJobs: async () => 0 }

async function listen(server: Server): Promise<Served> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  // as: a server that listens on a port has this address
  const { port } = server.address() as AddressInfo
  return { ...nothingKept, port }
}

async function reply(served: Served, request: ServerRequest): Promise<number> {
  switch (request) {
    case 'usage': {
      const { user, system } = process.cpuUsage()
      return user + system + (served.peer?.usage() ?? 0)
    }
    case 'main thread':
      return served.peer === undefined ? readMainMicros() : 0
    case 'heap': {
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
    case 'admin port':
      return served.adminPort ?? 0
    case 'jobs':
      return served.countDoneJobs()
    case 'queued':
      return served.countQueuedJobs()
    case 'empty':
      // no forced collection: it would also drop compiled code, and so cost more than it saves
      served.empty()
      return served.port
    case 'stop':
      served.peer?.stop()
      return served.port
  }
}

/** The microseconds of the main thread, whose id is that of the process. Linux counts nanoseconds for each thread: proc(5). */
function readMainMicros(): number {
  const file = `/proc/self/task/${process.pid}/schedstat`
  return existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) / 1_000 : 0
}

function send(answer: Promise<number>): void {
  answer.then(
    (result) => process.send?.({ result } satisfies ServerReply),
    (error: unknown) => process.send?.({ failure: String(error) } satisfies ServerReply),
  )
}

// as: child.ts wrote these options
const starting = serve(JSON.parse(process.argv[2] ?? '{}') as ServerOptions)
send(starting.then(({ port }) => port))
process.on('message', (request: ServerRequest) => send(starting.then((served) => reply(served, request))))
process.on('disconnect', () => process.exit())
