// Senders like real providers: they repeat each delivery with the same key until the answer is 200, and record acknowledged deliveries.
import { EventEmitter, once } from 'node:events'
import { Agent, request } from 'node:http'
import type { History } from '../history/history.ts'
import { type Gateway, hookToken } from './gateway.ts'

export type Sent = {
  readonly kind: 'wake' | 'agent' | 'mapped' | 'rolled'
  /** Unique for each delivery. */
  readonly text: string
  readonly deliveryId: string
}

type Load = {
  /** Lets the senders send at most this number of further deliveries to a gateway, in addition to those in progress. */
  open(gateway: Pick<Gateway, 'url' | 'token'>, deliveries: number): void
  /** Starts no request until the next `open`. Requests in progress continue. */
  close(): void
  /** Starts no new delivery. Resolves with all acknowledged ones when every started delivery is acknowledged. */
  finish(): Promise<readonly Sent[]>
  /** After `finish`, sends the newest acknowledged deliveries again, at most so many. */
  repeat(gateway: Pick<Gateway, 'url' | 'token'>, limit: number): Promise<void>
  readonly acknowledged: readonly Sent[]
  /** Statuses that were neither 200 nor 503. */
  readonly unexpected: readonly number[]
}

type LoadOptions = {
  readonly connections: number
  readonly pickBelow: (limit: number) => number
  readonly kinds?: readonly Sent['kind'][]
  /** The characters that are added to each text. */
  readonly padding?: number
  /** Records each attempt, and looks at one run of eight, as the answer came. */
  readonly history?: History
}

/** `mapped` and `rolled` are mappings on these paths whose message is the field `text`. Half of the usual kinds are wakes. */
export function createLoad(options: LoadOptions): Load {
  const { connections, pickBelow, kinds = ['wake', 'wake', 'agent', 'mapped'], padding = 0, history } = options
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const acknowledged: Sent[] = []
  const bodies = new Map<string, string>()
  const unexpected: number[] = []
  const state: { gate: { url: string; token: string } | undefined; budget: number; finishing: boolean } = {
    gate: undefined,
    budget: 0,
    finishing: false,
  }
  let count = 0
  const changes = new EventEmitter().setMaxListeners(0)
  const waitForChange = () => once(changes, 'changed')

  async function sendAll(): Promise<void> {
    for (;;) {
      while (!state.finishing && (state.gate === undefined || state.budget <= 0)) await waitForChange()
      if (state.finishing) return
      state.budget -= 1
      await deliver(toDelivery(count++, kinds[pickBelow(kinds.length)] ?? 'wake', padding))
    }
  }

  async function deliver({ kind, text, key, body }: ReturnType<typeof toDelivery>): Promise<void> {
    for (;;) {
      while (state.gate === undefined) await waitForChange()
      const { url, token } = state.gate
      const answer = await attempt(`${url}/${kind}`, { token, key, body })
      if (answer?.status === 200) {
        acknowledged.push({ kind, text, deliveryId: answer.deliveryId })
        bodies.set(text, body)
        if (answer.runId !== '' && acknowledged.length % 8 === 0)
          await history?.look(answer.runId, (run) => askRun(url, run))
        return
      }
      if (answer !== undefined && answer.status !== 503) unexpected.push(answer.status)
      // the sender waits for a change, because it would retry in a tight loop while the gateway is gone
      if (answer === undefined && state.gate?.url === url) await waitForChange()
    }
  }

  async function attempt(url: string, options: PostOptions) {
    const end = history?.invoke(options.key)
    const answer = await postOnce(agent, url, options).catch(() => undefined)
    end?.(answer)
    return answer
  }

  const senders = Promise.all(Array.from({ length: connections }, sendAll))
  return {
    open({ url, token }, deliveries) {
      state.gate = { url, token }
      state.budget = deliveries
      changes.emit('changed')
    },
    close() {
      state.gate = undefined
      changes.emit('changed')
    },
    async finish() {
      state.finishing = true
      changes.emit('changed')
      await senders
      agent.destroy()
      return acknowledged
    },
    async repeat({ url, token }, limit) {
      for (const { kind, text } of acknowledged.slice(-limit))
        await attempt(`${url}/${kind}`, { token, key: text.replace(/x+$/, ''), body: bodies.get(text) ?? '' })
      agent.destroy()
    },
    acknowledged,
    unexpected,
  }
}

function toDelivery(number: number, kind: Sent['kind'], padding: number) {
  const key = `delivery-${number}.`
  const text = key + 'x'.repeat(padding)
  const body = kind === 'agent' ? { message: text, deliver: false } : { text }
  return { kind, text, key, body: JSON.stringify(body) }
}

type PostOptions = { token: string; key: string; body: string }

/** Asks for a run on the hook port. */
export function askRun(url: string, run: string): Promise<Response> {
  const signal = AbortSignal.timeout(10_000)
  return fetch(`${url}/runs/${run}`, { headers: { authorization: `Bearer ${hookToken}` }, signal })
}

export function postOnce(agent: Agent, url: string, { token, key, body }: PostOptions) {
  return new Promise<{ status: number; deliveryId: string; runId: string }>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'idempotency-key': key,
    }
    const req = request(url, { method: 'POST', agent, headers, timeout: 10_000 }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      res.once('error', reject)
      res.once('end', () => {
        // an answer that the kill cut off does not count
        if (!res.complete) return reject(new Error('cut off'))
        const read = (name: string) => new RegExp(`"${name}":"([^"]+)"`).exec(text)?.[1] ?? ''
        resolve({ status: res.statusCode ?? 0, deliveryId: read('deliveryId'), runId: read('runId') })
      })
    })
    req.once('timeout', () => req.destroy(new Error('no answer')))
    req.once('error', reject)
    req.end(body)
  })
}

/** Numbers below a limit, the same for the same seed (mulberry32). */
export function createDice(seed: number): (limit: number) => number {
  let state = seed >>> 0
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}
