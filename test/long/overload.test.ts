// More than a gateway can take, for `HOOKLOOM_OVERLOAD_SECONDS` (default: 15): each of many connections sends its next request as soon as the last
// one is answered. What is answered with 200 is there, everything else is a 503 that says when to come back, and the memory has a limit.
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { count } from '../counts.ts'
import { drain } from '../e2e/aftermath.ts'
import { hookToken, post, readMemoryMb, startGateway } from '../e2e/gateway.ts'
import { readStore } from '../e2e/inside.ts'

const seconds = Number(process.env['HOOKLOOM_OVERLOAD_SECONDS'] ?? 15)
const connections = 512
const maxMemoryMb = 320
const isLinux = process.platform === 'linux'

type Answered = { ok: number; later: number; readonly others: string[] }

test.skipIf(!isLinux)(
  `${connections} connections that never pause get answers, and 200 only for what is stored${isLinux ? '' : ' (skipped: it reads /proc)'}`,
  { timeout: seconds * 2_000 + 600_000 },
  async (context) => {
    const mapping = { id: 'noisy', match: { path: 'noisy' }, action: 'wake', textTemplate: '{{text}}' }
    const gateway = await startGateway({ config: { hooks: { mappings: [mapping] } } })
    const answered: Answered = { ok: 0, later: 0, others: [] }
    const end = Date.now() + seconds * 1_000
    const { port } = new URL(gateway.url)
    await Promise.all(
      Array.from({ length: connections }, (_, sender) => sendUntil(Number(port), sender, end, answered)),
    )
    const mostMb = Math.round(readMemoryMb(gateway.child.pid, 'VmHWM'))

    // it takes requests as before
    expect(await post(gateway, 'noisy', { text: 'afterwards' })).toMatchObject({ ok: true })
    await drain(gateway.dir)
    const stored = await readStore(gateway.dir, async (store) => (await store.counts()).deliveries)
    expect(await gateway.stop()).toBe(0)
    expect(answered.others).toEqual([])
    expect(answered.ok).toBeGreaterThan(connections)
    expect(stored.accepted).toBe(answered.ok + 1)
    expect(mostMb).toBeLessThan(maxMemoryMb)
    count(context, { acknowledged: answered.ok, lost: 0, 'answered 503': answered.later, 'MB at most': mostMb })
  },
)

/** Sends requests over one connection, one after the other, and resolves with the last answer after `end`. */
function sendUntil(port: number, sender: number, end: number, answered: Answered): Promise<void> {
  return new Promise((resolve, reject) => {
    let no = 0
    let head = ''
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const send = () => {
      const body = JSON.stringify({ text: `${sender}.${no++} ${'x'.repeat(900)}` })
      socket.write(
        `POST /hooks/noisy HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${hookToken}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      )
    }
    socket.once('connect', send).once('error', reject)
    socket.once('close', () => reject(new Error(`the gateway closed connection ${sender}`)))
    socket.on('data', (chunk) => {
      head += chunk.toString('latin1')
      const [top = '', rest] = head.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(top)?.[1])
      if (rest === undefined || rest.length < length) return
      if (top.startsWith('HTTP/1.1 200 ')) answered.ok += 1
      else if (/^HTTP\/1\.1 503 .*retry-after: \d/is.test(top)) answered.later += 1
      else answered.others.push(head.slice(0, 300))
      head = ''
      if (Date.now() < end && answered.others.length < 10) return send()
      socket.removeAllListeners('close').destroy()
      resolve()
    })
  })
}
