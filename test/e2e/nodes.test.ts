// Two gateways on one Postgres, in one process: either may run a job that the other accepted, and work that must run once runs once.
import { createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { createPostgresStore, type PostgresOptions } from '../../src/store/postgres/postgres.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken, makeConfigDir, makeFolder } from './gateway.ts'
import { startInside } from './inside.ts'

let closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.toReversed()) await close()
  closing = []
})

type Given = Pick<PostgresOptions, 'listening'> & {
  readonly config?: object
  readonly files?: Readonly<Record<string, string>>
}

async function openDatabase() {
  const { url, drop } = await newSchema()
  closing.push(drop)
  const replies: string[] = []
  const start = async (name: string, { config, files, ...options }: Given = {}) => {
    const own = createPostgresStore({ url, ...options })
    const gateway = await startInside({
      store: own,
      config: { ...config },
      ...(files && { files }),
      leaseTimes: { leaseMs: 2_000, everyMs: 200 },
      write: ({ text }) => replies.push(`${name}: ${text}`),
    })
    closing.push(gateway.stop)
    return { ...gateway, store: own }
  }
  return { start, replies }
}

async function send(
  gateway: { url: string },
  hook: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; deliveryId: string }> {
  const response = await fetch(`${gateway.url}/${hook}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, ...((await response.json()) as { deliveryId: string }) }
}

const never = { pingMs: 3_600_000, pongMs: 3_600_000, pollMs: 3_600_000 }

describe.skipIf(whyNoPostgres !== undefined)(`two gateways on one Postgres (${whyNoPostgres ?? 'available'})`, () => {
  test('hookloom doctor and list name the generations of gateways that differ, and list says nothing while they are the same', async () => {
    const { url, drop } = await newSchema()
    closing.push(drop)
    const store = createPostgresStore({ url })
    closing.push(store.close)
    const dir = makeConfigDir({ config: { store: { url: '${DATABASE_URL}' } } })
    const run = (command: string) => runCommand([command], { dir, env: { DATABASE_URL: url } })
    const toNode = (id: string, generation: string) => ({ id, generation, version: '1.2.3', address: 'http://a' })
    await store.join(toNode('host-1', 'gen-a'))
    await store.join(toNode('host-2', 'gen-a'))
    expect((await run('doctor')).stdout).toMatch(/host-1 \(1\.2\.3\) at http:\/\/a, host-2/)
    expect((await run('list')).stderr).toBe('')
    await store.join(toNode('host-2', 'gen-b'))
    const different = /different generations: host-1 \(1\.2\.3\): gen-a, host-2 \(1\.2\.3\): gen-b/
    expect((await run('doctor')).stdout).toMatch(different)
    expect((await run('list')).stderr).toMatch(different)
  })

  test('each delivery says which gateway took it, and gateways with different generations are named', async () => {
    const { start } = await openDatabase()
    const one = await start('one', { config: { hooks: { defaultSessionKey: 'hook:a' } } })
    const readiness = async (gateway: { adminUrl: string }) => {
      const response = await fetch(`${gateway.adminUrl}/readyz`, {
        headers: { authorization: `Bearer ${gatewayToken}` },
      })
      return (await response.json()) as {
        nodes: { id: string; generation: string; address: string }[]
        different?: string
      }
    }
    const {
      nodes: [first],
      ...alone
    } = await readiness(one)
    expect(alone.different).toBeUndefined()
    expect(first).toMatchObject({ generation: expect.any(String), address: one.url })
    const two = await start('two', { config: { hooks: { defaultSessionKey: 'hook:b' } } })
    const both = await readiness(one)
    expect(both.nodes).toHaveLength(2)
    for (const { id, generation } of both.nodes) {
      expect(both.different).toContain(id)
      expect(both.different).toContain(generation)
    }
    const { deliveryId } = await send(two, 'wake', { text: 'a' })
    const second = both.nodes.find(({ id }) => id !== first?.id)
    expect(await one.store.delivery(deliveryId)).toMatchObject(
      second === undefined ? {} : { node: second.id, generation: second.generation },
    )
    await two.stop()
    expect((await readiness(one)).nodes).toEqual([expect.objectContaining({ id: first?.id })])
  })

  test('a job is claimed by the other gateway at once if its own gateway has no free slot', async () => {
    const { start } = await openDatabase()
    const door = join(makeFolder(), 'door')
    const script = `cat > /dev/null; while ! [ -e ${door} ]; do sleep 0.05; done; echo done`
    const config = {
      agents: { defaults: { maxConcurrent: 1, runner: 'door' } },
      runners: { door: { kind: 'command', command: 'sh', args: ['-c', script], input: 'stdin' } },
    }
    // polls are off, so only a notification reaches the other gateway
    const one = await start('one', { config, listening: never })
    await start('two', { config, listening: never })
    const running = async () => (await one.store.counts()).jobs.running
    await send(one, 'agent', { message: 'first' })
    await expect.poll(running, slow).toBe(1)
    await send(one, 'agent', { message: 'second' })
    await expect.poll(running, slow).toBe(2)
    writeFileSync(door, '')
    await expect.poll(async () => (await one.store.counts()).jobs.done, slow).toBe(2)
  })

  test('an interval has one heartbeat, and another gateway continues when the first one stops', async () => {
    const { start, replies } = await openDatabase()
    const config = { agents: { defaults: { heartbeat: { every: '1s', minIntervalSeconds: 1, prompt: 'Look.' } } } }
    const one = await start('one', { config })
    const two = await start('two', { config })
    const countJobs = async () => (await two.store.counts()).jobs
    const startedAt = Date.now()
    await expect.poll(async () => (await countJobs()).done).toBeGreaterThan(3)
    const most = (Date.now() - startedAt) / 1_000 + 2
    expect((await countJobs()).done).toBeLessThanOrEqual(most)
    await one.stop()
    const { done } = await countJobs()
    await expect.poll(async () => (await countJobs()).done).toBeGreaterThan(done + 1)
    expect(replies.length).toBeGreaterThan(0)
  })

  test('a wake has exactly one turn, whichever gateway runs it', async () => {
    const { start } = await openDatabase()
    const config = { agents: { defaults: { heartbeat: { minIntervalSeconds: 1 } } } }
    const one = await start('one', { config })
    const two = await start('two', { config })
    const wakes = ['The kettle boils', 'The tide is out']
    await Promise.all([one, two].map((gateway, index) => send(gateway, 'wake', { text: wakes[index], mode: 'now' })))
    const waiting = async () => (await one.store.waitingEvents({ agentId: 'main', sessionKey: 'main', limit: 1 })).count
    await expect.poll(waiting).toBe(0)
    const messages = await one.store.messages({ agentId: 'main', sessionKey: 'main', limit: 99 })
    const prompts = messages.flatMap(({ role, text }) => (role === 'user' ? text : []))
    // the two wakes have one turn together, or a turn each
    for (const text of wakes) expect(prompts.filter((prompt) => prompt.includes(text))).toHaveLength(1)
  })

  test('only the gateway that accepted a delivery runs its slow transform, and another one does once that gateway is gone', async () => {
    const { start } = await openDatabase()
    const ran = join(makeFolder(), 'ran')
    const door = join(makeFolder(), 'door')
    const files = { 'hooks/transforms/slow.ts': buildSlowTransform({ ran, door }) }
    const config = {
      hooks: {
        answerWithinMs: 50,
        transforms: { env: [] },
        mappings: [{ id: 'slow', match: { path: 'slow' }, transform: { module: 'slow.ts' } }],
      },
    }
    const one = await start('one', { config, files })
    const two = await start('two', { config, files })
    const { deliveryId } = await send(one, 'slow', { n: 1 })
    const readState = async () => (await two.store.delivery(deliveryId))?.state
    expect(await readState()).toBe('pending')
    // a dead gateway leaves this state: the same request, and a lease that is not renewed
    const [open] = await two.store.openDeliveries({ id: deliveryId, limit: 1 })
    if (open === undefined) throw new Error('it is pending')
    const [lease] = await two.store.lease({ names: ['delivery/orphan'], leaseMs: 1_500 })
    expect(lease).toBeDefined()
    const orphan = { state: 'pending', mappingId: undefined, generation: 'g', jobs: [], trace: [], log: [] } as const
    const { request, hook, receivedAt } = open
    const answer = { status: 200, body: '{}' }
    const rest = {
      id: 'orphan',
      source: undefined,
      event: undefined,
      dedupe: undefined,
      request,
      hook,
      receivedAt,
      answer,
    }
    await two.store.append({ ...orphan, ...rest })
    await expect.poll(() => readFileSync(ran, 'utf8'), slow).toBe('.'.repeat(2))
    writeFileSync(door, '')
    await expect.poll(readState, slow).toBe('accepted')
    await expect.poll(async () => (await two.store.delivery('orphan'))?.state, slow).toBe('accepted')
    expect(readFileSync(ran, 'utf8')).toBe('..')
  })

  test('a delivery that a gateway parked runs once on each gateway with other code, until one of them accepts it', async () => {
    const { start } = await openDatabase()
    const ran = join(makeFolder(), 'ran')
    const config = {
      hooks: { mappings: [{ id: 'x', match: { path: 'x' }, transform: { module: 'x.ts' } }] },
    }
    const toFiles = (outcome: string) => ({
      'hooks/transforms/x.ts': `import { appendFileSync } from 'node:fs'
        export default ({ payload }) => { appendFileSync('${ran}', '${outcome[0]}'); ${outcome} }`,
    })
    const broken = await start('broken', { config, files: toFiles(`throw new Error('older')`) })
    const alsoBroken = await start('also broken', { config, files: toFiles(`throw new Error('other')`) })
    const { deliveryId } = await send(broken, 'x', { n: 1 })
    const readRuns = () => readFileSync(ran, 'utf8')
    await expect.poll(readRuns, slow).toBe('tt')
    expect((await alsoBroken.store.delivery(deliveryId))?.state).toBe('parked')
    const mended = await start('mended', { config, files: toFiles(`return { message: 'it works' }`) })
    await expect.poll(async () => (await mended.store.delivery(deliveryId))?.state, slow).toBe('accepted')
    expect(readRuns()).toBe('ttr')
  })

  test('the repetitions of a delivery at all gateways are counted together', async () => {
    const { start } = await openDatabase()
    const one = await start('one')
    const two = await start('two')
    const keyed = { 'idempotency-key': 'one' }
    const { deliveryId } = await send(one, 'wake', { text: 'a' }, keyed)
    for (const gateway of [one, two, two]) {
      expect(await send(gateway, 'wake', { text: 'a' }, keyed)).toEqual({
        status: 200,
        ok: true,
        deliveryId,
        mode: 'now',
      })
    }
    await expect.poll(async () => (await one.store.delivery(deliveryId))?.repeats, slow).toBe(3)
  })

  test('guesses of the token at all gateways are counted together, and the client is locked out at each', async () => {
    const { start } = await openDatabase()
    const one = await start('one')
    const two = await start('two')
    const guessToken = async ({ url }: { url: string }) =>
      (await fetch(`${url}/wake`, { method: 'POST', headers: { authorization: 'Bearer wrong' } })).status
    for (let count = 0; count < 10; count += 1) {
      expect(await guessToken(one)).toBe(401)
      expect(await guessToken(two)).toBe(401)
    }
    await expect.poll(() => Promise.all([guessToken(one), guessToken(two)]), slow).toEqual([429, 429])
    const { status } = await send(two, 'wake', { text: 'the right token' })
    expect(status).toBe(429)
  })

  test('a mapping that is armed at one gateway is armed at the other one, and both know the secret', async () => {
    const { start } = await openDatabase()
    const mapping = { id: 'asana', match: { path: 'asana' }, verify: { scheme: 'asana' }, messageTemplate: 'x' }
    const config = { hooks: { mappings: [mapping] } }
    const one = await start('one', { config })
    const two = await start('two', { config })
    const post = (gateway: { url: string }, headers: Record<string, string>, body: string) =>
      fetch(`${gateway.url}/asana`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body,
      })
    const secret = 'b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81'
    const sendSecret = async () => (await post(two, { 'x-hook-secret': secret }, '{}')).status
    expect(await sendSecret()).toBe(401)
    const armed = await fetch(`${one.adminUrl}/api/mappings/asana/arm`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gatewayToken}` },
    })
    expect(armed.status).toBe(200)
    await expect.poll(sendSecret, slow).toBe(200)
    const body = '{"events":[{}]}'
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    await expect.poll(async () => (await post(one, { 'x-hook-signature': signature }, body)).status, slow).toBe(200)
    // the window for a secret is now closed on all gateways
    expect(await sendSecret()).toBe(401)
    expect((await post(one, { 'x-hook-secret': `${secret}0` }, '{}')).status).toBe(401)
  })
})

const slow = { timeout: 60_000 }

/** A transform that records its run, and waits until the file `door` exists. */
function buildSlowTransform({ ran, door }: { ran: string; door: string }): string {
  return `import { appendFileSync, existsSync } from 'node:fs'
    export default async ({ payload }) => {
      appendFileSync('${ran}', '.')
      while (!existsSync('${door}')) await new Promise((resolve) => setTimeout(resolve, 20))
      return { message: 'through' }
    }`
}
