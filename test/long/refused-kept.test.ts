// An hour of requests with a wrong secret, for one gateway on SQLite and for two on Postgres. After the secret is corrected, none is
// missing and none ran twice, even though the gateway is killed during the retry.
import { createHmac } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { type Gateway, gatewayToken, startGateway } from '../e2e/gateway.ts'
import { openReader } from '../../src/store/open.ts'
import type { StorePlace } from '../../src/model/places.ts'

const secrets = { former: 'the secret of the sender, old', now: 'the secret of the sender, new' }
const total = 1_000
const kills = 3

const verify = { scheme: 'github', secret: secrets.former }
/** The requests of the second mapping have no id of their sender, so only the request id identifies them. */
const mappings = [
  { id: 'signed', match: { path: 'github' }, verify, action: 'wake', textTemplate: '{{n}}' },
  {
    id: 'nameless',
    match: { path: 'nameless' },
    verify: { ...verify, scheme: 'generic-hmac', header: 'x-signature' },
    action: 'wake',
    textTemplate: '{{n}}',
  },
]

async function push({ url }: Gateway, n: number): Promise<void> {
  const body = JSON.stringify({ n: `event ${n}` })
  const digest = createHmac('sha256', secrets.now).update(body).digest('hex')
  const named = {
    'x-github-event': 'push',
    'x-github-delivery': `guid-${n}`,
    'x-hub-signature-256': `sha256=${digest}`,
  }
  const [path, proof] = n % 4 === 0 ? ['nameless', { 'x-signature': digest }] : ['github', named]
  const headers = { 'content-type': 'application/json', ...proof }
  const answer = await fetch(`${url}/${path}`, { method: 'POST', headers, body })
  await answer.arrayBuffer()
  expect([401, 429]).toContain(answer.status)
}

const Answer = z.object({
  ran: z.number(),
  repeated: z.number(),
  stillRefused: z.number(),
  next: z.number().optional(),
})

async function retry({ adminUrl }: Gateway): Promise<z.infer<typeof Answer>> {
  const sum = { ran: 0, repeated: 0, stillRefused: 0 }
  for (let after: number | undefined = 0; after !== undefined;) {
    const answer = await fetch(`${adminUrl}/api/refusals/retry?after=${after}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gatewayToken}` },
    })
    const part = Answer.parse(await answer.json())
    sum.ran += part.ran
    sum.repeated += part.repeated
    sum.stillRefused += part.stillRefused
    after = part.next
  }
  return sum
}

async function readTexts(place: StorePlace): Promise<string[]> {
  const reader = await openReader(place)
  try {
    return (await reader.events({ limit: 10_000 })).map(({ text }) => text)
  } finally {
    await reader.close()
  }
}

/** Returns the texts of all wakes, after a retry that was killed several times. */
async function killAndRetry(
  count: number,
  store: object | undefined,
  toPlace: (dir: string) => StorePlace,
): Promise<string[]> {
  const config = { hooks: { mappings }, ...(store && { store }) }
  const gateways: Gateway[] = []
  for (let n = 0; n < count; n += 1) gateways.push(await startGateway({ config }))
  const all = Array.from({ length: total }, (_, n) => n)
  while (all.length > 0) await Promise.all(all.splice(0, 20).map((n) => push(gateways[n % count] as Gateway, n)))
  for (const gateway of gateways) expect(await gateway.stop()).toBe(0)
  const dirs = gateways.map(({ dir }) => dir)
  for (const dir of dirs) {
    const file = join(dir, 'hookloom.jsonc')
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(secrets.former, secrets.now))
  }
  const place = toPlace(dirs[0] ?? '')
  for (let kill = 0; kill < kills; kill += 1) {
    const started = await Promise.all(dirs.map((dir) => startGateway({ dir })))
    const before = (await readTexts(place)).length
    const retries = started.map((gateway) => retry(gateway).catch(() => undefined))
    while ((await readTexts(place)).length < before + 60) await new Promise((resolve) => setTimeout(resolve, 5))
    await Promise.all(started.map((gateway) => gateway.kill()))
    await Promise.all(retries)
  }
  const last = await Promise.all(dirs.map((dir) => startGateway({ dir })))
  for (const gateway of last) expect((await retry(gateway)).stillRefused).toBe(0)
  expect(await retry(last[0] as Gateway)).toEqual({ ran: 0, repeated: 0, stillRefused: 0 })
  const texts = await readTexts(place)
  for (const gateway of last) await gateway.stop()
  return texts
}

describe('a wrong secret for an hour', () => {
  test(
    'on SQLite, each of 1,000 requests refused for a wrong secret runs exactly once, despite three kills during the retry',
    { timeout: 120_000 },
    async () => {
      const texts = await killAndRetry(1, undefined, (dir) => ({ kind: 'file', file: join(dir, 'state/hookloom.db') }))
      expect([texts.length, new Set(texts).size]).toEqual([total, total])
    },
  )

  test.skipIf(whyNoPostgres !== undefined)(
    'on Postgres, each of 1,000 requests refused for a wrong secret runs exactly once, although two gateways retry at once and are killed',
    { timeout: 120_000 },
    async () => {
      const { url, drop } = await newSchema()
      const texts = await killAndRetry(2, { url }, () => ({ kind: 'url', url }))
      expect([texts.length, new Set(texts).size]).toEqual([total, total])
      await drop()
    },
  )
})
