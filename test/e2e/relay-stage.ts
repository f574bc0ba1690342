// A relay in its own process, a gateway that takes its requests, and senders that sign.
import type { ChildProcess } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect } from 'vitest'
import { generateHomeKey, deriveKeys } from '../../src/plugins/sources/relay/keys.ts'
import { sealRequest } from '../../src/plugins/sources/relay/envelope.ts'
import { joinHead, joinParts } from '../../src/plugins/sources/relay/wire.ts'
import { onFileEnd } from '../file-end.ts'
import { launch, mainFile, makeFolder, readSessionIds } from './gateway.ts'

export type RelayProcess = {
  readonly url: string
  readonly dir: string
  readonly child: ChildProcess
  output(): string
  /** Sends SIGTERM, and resolves with the exit code. */
  stop(): Promise<number | null>
  kill(): Promise<void>
}

/** `port`: any free one by default. */
export async function startRelayProcess({
  dir = join(makeFolder(), 'relay'),
  port = 0,
}: { dir?: string; port?: number } = {}): Promise<RelayProcess> {
  const args = [mainFile, 'relay', '--port', String(port), '--dir', dir]
  const relay = await launch([process.execPath, ...args], (text) => /"url":"(http[^"]+)"/.exec(text)?.[1])
  const { child, exited, output, stop, kill, found: url } = relay
  // a test that only sees that nothing answers would not say why
  void exited.then((code) => child.killed || console.error(`The relay ended by itself, with ${code}:\n${output()}`))
  return { url, dir, child, output, stop, kill }
}

const githubSecret = 'github-secret-of-it'
const stripeSecret = 'whsec_stripe-secret'
export const metaWord = 'our-word-of-the-handshake'

/** The query of a handshake that the mapping `meta` answers with the challenge. */
export const toChallenge = (challenge: string) =>
  `?hub.mode=subscribe&hub.verify_token=${metaWord}&hub.challenge=${challenge}`

/** A configuration with a new key. `toUrl`: the public URL of a hook. */
export function toRelayed(url: string, more: object = {}) {
  const key = generateHomeKey()
  const { address } = deriveKeys(key).known
  const config = {
    agents: { defaults: { heartbeat: { every: 0 } } },
    sources: { relay: { kind: 'relay', url, key } },
    hooks: {
      mappings: [
        { id: 'deploy', match: { path: 'deploy' }, verify: { scheme: 'github', secret: githubSecret }, ...toSession() },
        { id: 'pay', match: { path: 'pay' }, verify: { scheme: 'stripe', secret: stripeSecret }, ...toSession() },
        {
          id: 'meta',
          match: { path: 'meta' },
          verify: { scheme: 'meta', secret: 'meta-secret-of-it', verifyToken: metaWord },
          ...toSession(),
        },
      ],
    },
    ...more,
  }
  const toUrl = (path: string) => `${url}/r/${address}/hooks/${path}`
  /** Waits until the gateway asks the relay for requests. */
  async function awaitHome(): Promise<void> {
    const greet = async () => (await fetch(`${toUrl('meta')}${toChallenge('1')}`)).status
    await expect.poll(greet, { timeout: 90_000 }).toBe(200)
  }
  return { key, address, config, toUrl, awaitHome }
}

/** The id in the body is in the session of its run. */
const toSession = () => ({ messageTemplate: '{{id}}', sessionKey: 'hook:relayed:{{id}}' })

const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex')

/** `delivery`: the delivery id of the sender, which a repetition has too. */
export function postSigned(url: string, payload: object, delivery?: string): Promise<Response> {
  const body = JSON.stringify(payload)
  const headers = { ...sign(body), ...(delivery === undefined ? {} : { 'x-github-delivery': delivery }) }
  return fetch(url, { method: 'POST', headers, body })
}

const sign = (body: string) => ({
  'content-type': 'application/json',
  'x-github-event': 'push',
  'x-hub-signature-256': `sha256=${hmac(githubSecret, body)}`,
})

/** A signed request to the hook `deploy`, sealed by a relay that knows the key of the home. */
export function sealSigned(key: string, payload: object): Buffer {
  const body = JSON.stringify(payload)
  const rawHeaders = Object.entries({ host: 'relay.example.org', ...sign(body) }).flat()
  const about = { id: randomUUID(), at: Date.now(), method: 'POST', url: '/hooks/deploy', client: '203.0.113.7' }
  return sealRequest({ ...about, rawHeaders, body: Buffer.from(body) }, deriveKeys(key).known)
}

type Batch = { readonly epoch: string; readonly handed: readonly (readonly [number, Buffer])[] }

/** A relay that hands over what it is told to, whoever asks, one batch at each call. */
export async function startFalseRelay() {
  const left: Batch[] = []
  const server = createServer((req, res) => {
    const batch = req.method === 'GET' ? left.shift() : undefined
    if (req.method !== 'GET') res.writeHead(204).end()
    else if (batch === undefined) setTimeout(() => res.writeHead(200, { 'x-relay-epoch': 'none' }).end(), 100)
    else {
      const parts = batch.handed.map(([number, envelope]) => joinHead({ number }, envelope))
      res.writeHead(200, { 'x-relay-epoch': batch.epoch }).end(joinParts(parts))
    }
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onFileEnd(() => server.closeAllConnections())
  onFileEnd(() => void server.close())
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, hand: (...batches: readonly Batch[]) => void left.push(...batches) }
}

/** `at`: the signed time, in seconds. */
export function postTimed(url: string, payload: object, at: number): Promise<Response> {
  const body = JSON.stringify(payload)
  const headers = {
    'content-type': 'application/json',
    'stripe-signature': `t=${at},v1=${hmac(stripeSecret, `${at}.${body}`)}`,
  }
  return fetch(url, { method: 'POST', headers, body })
}

/** The ids that became runs, one for each run, the oldest first. */
export const readRelayed = (gateway: { readonly adminUrl: string }) => readSessionIds(gateway, 'hook:relayed:')

/** The files below a folder that have the text. */
export function findInFiles(dir: string, text: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) => {
    const file = join(dir, name)
    return statSync(file).isFile() && readFileSync(file).includes(text)
  })
}

const windowBytes = 1024 ** 2

/** How often a text of at least 16 characters is in the memory of a process, on Linux. */
export function countInMemory(pid: number, text: string): number {
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  let found = 0
  for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
    const [, from = '', to = ''] = /^([\da-f]+)-([\da-f]+) r/.exec(line) ?? []
    const end = Number.parseInt(to, 16)
    for (let at = Number.parseInt(from, 16); at < end; at += windowBytes) {
      // the windows overlap, so that a text on their border counts
      const bytes = readMemory(memory, at, Math.min(windowBytes + text.length - 1, end - at))
      for (let hit = bytes.indexOf(text); hit >= 0; hit = bytes.indexOf(text, hit + 1)) found += 1
    }
  }
  closeSync(memory)
  return found
}

/** Empty for what the kernel does not show. */
function readMemory(memory: number, at: number, size: number): Buffer {
  const bytes = Buffer.alloc(size)
  try {
    return bytes.subarray(0, readSync(memory, bytes, 0, size, at))
  } catch {
    return Buffer.alloc(0)
  }
}
