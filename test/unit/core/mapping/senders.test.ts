// Requests and signatures of each sender: test/fixtures/senders has one file for each sender, named like its row.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { toJsonBody } from '../../../../src/core/model/body.ts'
import { readDeliveryId, readEvent } from '../../../../src/core/mapping/sources.ts'
import { now, requestOf, verifierOf } from '../../gateway/proofs/verifiers/stage.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { find: findSender, recognise: recogniseSender, schemeNames } = builtInSenders

const headers = z.record(z.string(), z.string())

const Fixture = z.strictObject({
  /** Requests as the sender makes them. If there is a body: the expected `event` and `deliveryId`, if the request has them. */
  requests: z
    .array(
      z.union([
        z.strictObject({ headers }),
        z.strictObject({ headers, body: z.json(), event: z.string().optional(), deliveryId: z.string().optional() }),
      ]),
    )
    .default([]),
  /** Signed requests from the sender's own documentation or tests. `now`: the time of the check, in seconds. */
  published: z
    .array(
      z.strictObject({
        docs: z.url(),
        verify: z.looseObject({ scheme: z.enum(schemeNames) }),
        method: z.string().default('POST'),
        url: z.string().default('/hooks/inbound'),
        headers,
        body: z.string(),
        now: z.number().default(now / 1_000),
      }),
    )
    .default([]),
})

const folder = join(import.meta.dirname, '../../../fixtures/senders')
const fixtures = readdirSync(folder).map((file) => ({
  source: basename(file, '.json'),
  ...Fixture.parse(JSON.parse(readFileSync(join(folder, file), 'utf8'))),
}))
const requests = fixtures.flatMap(({ source, requests: all }) => all.map((request) => [source, request] as const))
const published = fixtures.flatMap(({ source, published: all }) => all.map((example) => [source, example] as const))

test('each fixture file of senders is named after its sender and is not empty', () => {
  expect(fixtures.map(({ source }) => source).filter((source) => findSender(source) === undefined)).toEqual([])
  expect(fixtures.filter((fixture) => fixture.requests.length + fixture.published.length === 0)).toEqual([])
})

test.each(requests)('the sender %s is recognised in %j, with its event and its delivery id', (source, request) => {
  const sender = recogniseSender({ headers: request.headers })
  expect(sender?.facts.name).toBe(source)
  if (sender === undefined || !('body' in request)) return
  const given = { headers: request.headers, body: toJsonBody(request.body) }
  expect([readEvent(sender, given), readDeliveryId(sender, given)]).toEqual([request.event, request.deliveryId])
})

describe.each(published)('published signatures of %s', (_, { verify, method, url, headers: sent, body, now: at }) => {
  const verifier = verifierOf(verify, { now: () => at * 1_000 })
  const isProven = async (text: string) => (await verifier.verify(requestOf(sent, text, { method, url }))).ok

  test('the published signature proves its request', async () => {
    expect(await isProven(body)).toBe(true)
    expect(verifier.isClaimed(sent)).toBe(true)
  })

  test('the published signature proves no other body', async () => {
    expect(await isProven(`${body} `)).toBe(false)
  })
})
