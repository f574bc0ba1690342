// Several gateways on one Postgres behind a balancer, with failures: kills, pauses, and restarts of the database.
import { execFile } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { onFileEnd } from '../file-end.ts'
import { whyNoPostgres } from '../contract/postgres-stage.ts'
import { freePort, type Gateway, hookToken, makeConfigDir, startGateway } from './gateway.ts'

const run = promisify(execFile)
const versions = '/usr/lib/postgresql'
const newest = existsSync(versions) ? readdirSync(versions).toSorted((a, b) => Number(b) - Number(a))[0] : undefined
const bin = newest === undefined ? undefined : join(versions, newest, 'bin')

export const whyNoCluster: string | undefined =
  whyNoPostgres ?? (bin === undefined ? `no initdb below ${versions}: install the server of Postgres` : undefined)

export type Cluster = {
  readonly url: string
  query(sql: string): Promise<Record<string, unknown>[]>
  restart(): Promise<void>
}

/** A database server for this test, which may be restarted. It ends with the test file. */
export async function startCluster(): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'hookloom-cluster-'))
  const port = await freePort()
  // Postgres does not run as root
  const isRoot = userInfo().uid === 0
  const as = (command: string) =>
    isRoot ? run('su', ['postgres', '-s', '/bin/sh', '-c', command]) : run('sh', ['-c', command])
  if (isRoot) {
    const owner = (await run('id', ['-u', 'postgres'])).stdout.trim()
    chownSync(folder, Number(owner), 0)
  }
  const data = join(folder, 'data')
  const options = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1`
  const runControl = (what: string) =>
    as(`${bin}/pg_ctl -D ${data} -l ${folder}/log -o "${options}" -w ${what} > /dev/null 2>&1`)
  await as(`${bin}/initdb -D ${data} -U root -A trust --no-sync > /dev/null`)
  await runControl('start')
  onFileEnd(async () => {
    await runControl('stop -m immediate').catch(() => undefined)
    rmSync(folder, { recursive: true, force: true })
  })
  const url = `postgres://root@127.0.0.1:${port}/postgres`
  return {
    url,
    async query(sql) {
      const client = new Client({ connectionString: url })
      client.on('error', () => undefined)
      await client.connect()
      try {
        return (await client.query<Record<string, unknown>>(sql)).rows
      } finally {
        await client.end()
      }
    },
    restart: async () => void (await runControl('restart -m immediate')),
  }
}

export type Fleet = {
  /** The balancer, which sends each connection to a working gateway. */
  readonly front: Pick<Gateway, 'url' | 'token'>
  readonly dirs: readonly string[]
  /** Kills a gateway with SIGKILL and starts it again. Resolves with false if it is not running now. */
  killOne(index: number): Promise<boolean>
  /** Pauses the process of a gateway for this time. Resolves with false if it is not running now. */
  pauseOne(index: number, ms: number): Promise<boolean>
  /** The output of the running gateways. */
  output(): string
  stop(): Promise<(number | null)[]>
}

type Member = { gateway: Gateway | undefined; isPaused: boolean; readonly dir: string }

export async function startFleet(options: {
  readonly size: number
  readonly database: string
  readonly config: object
  readonly files?: Readonly<Record<string, string>>
  readonly pickBelow: (limit: number) => number
}): Promise<Fleet> {
  const { size, database, config, files = {}, pickBelow } = options
  const env = { DATABASE_URL: database }
  const given = { config: { ...config, store: { url: '${DATABASE_URL}' } }, files }
  const members: Member[] = Array.from({ length: size }, () => ({
    gateway: undefined,
    isPaused: false,
    dir: makeConfigDir(given),
  }))
  const start = async (member: Member) => {
    member.gateway = await startGateway({ dir: member.dir, env })
  }
  const [first, ...others] = members
  if (first === undefined) throw new Error('a fleet has gateways')
  await start(first)
  await Promise.all(others.map(start))

  const sockets = new Map<Socket, Member>()
  const server = createServer((near) => {
    const ready = members.filter(({ gateway, isPaused }) => gateway !== undefined && !isPaused)
    const member = ready[pickBelow(Math.max(1, ready.length))]
    if (member?.gateway === undefined) return void near.destroy()
    const far = connect(Number(new URL(member.gateway.url).port), '127.0.0.1')
    sockets.set(near, member)
    for (const socket of [near, far]) socket.on('error', () => undefined)
    near.on('close', () => {
      sockets.delete(near)
      far.destroy()
    })
    far.on('close', () => near.destroy())
    near.pipe(far).pipe(near)
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
  onFileEnd(() => {
    server.close()
    for (const socket of sockets.keys()) socket.destroy()
  })

  return {
    front: { url: `http://127.0.0.1:${port}/hooks`, token: hookToken },
    dirs: members.map(({ dir }) => dir),
    async killOne(index) {
      const member = members[index]
      const { gateway } = member ?? {}
      if (member === undefined || gateway === undefined || member.isPaused) return false
      member.gateway = undefined
      await gateway.kill()
      await start(member)
      return true
    },
    async pauseOne(index, ms) {
      const member = members[index]
      if (member?.gateway === undefined) return false
      member.isPaused = true
      member.gateway.child.kill('SIGSTOP')
      await new Promise((resolve) => setTimeout(resolve, ms))
      member.gateway.child.kill('SIGCONT')
      member.isPaused = false
      return true
    },
    output: () => members.map(({ gateway }) => gateway?.output() ?? '').join('\n'),
    stop: () => Promise.all(members.map(async ({ gateway }) => (await gateway?.stop()) ?? null)),
  }
}
