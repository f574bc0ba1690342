import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { buildCaptureSource, capture } from '../../../../src/gateway/replay/capture.ts'
import { toDeliveryHead } from '../../../../src/core/model/delivery.ts'
import { toGeneration, toTestDelivery } from '../../core/mapping/decide.ts'
import { createConfigDir } from '../../core/transforms/stage.ts'

/** Captures a request whose transform answers with this text. */
async function captureAnswer(body: string, env: Readonly<Record<string, string>>) {
  const mapping = { match: { path: 'x' }, transform: { module: 'x.ts' } }
  const transforms = { 'x.ts': () => ({ message: 'm', response: { body } }) }
  const generation = toGeneration([mapping], { transforms })
  const mappings = generation.mappings.map((compiled) => compiled.mapping)
  const parts = { config: generation.config, mappings, transforms: generation.transforms, senders: generation.senders }
  const delivery = toTestDelivery('x', { n: 1 })
  const record = { deliveryId: delivery.id, receivedAt: delivery.receivedAt, mappingId: undefined }
  const request = { head: toDeliveryHead(delivery), body: delivery.body.bytes }
  const { root } = await createConfigDir()
  const made = await capture(buildCaptureSource({ record, request }, parts), {
    name: 'one',
    module: 'x.ts',
    root,
    parts,
    env,
  })
  const text = readFileSync(made.file, 'utf8')
  return { text, expected: JSON.parse(text).expect, removed: made.removed }
}

test('an answer with a secret of the environment is not written into a fixture, and any other answer is', async () => {
  const secret = await captureAnswer('proof s3cr3t-of-env', { PROOF_KEY: 's3cr3t-of-env' })
  expect(secret.text).not.toContain('s3cr3t')
  expect(secret.removed).toEqual(['expect.response'])
  expect(secret.expected).toMatchObject({ decision: 'accept', actions: [{ message: 'm' }] })
  const coded = await captureAnswer(Buffer.from('proof s3cr3t-of-env').toString('base64'), {
    PROOF_KEY: 's3cr3t-of-env',
  })
  expect(coded.removed).toEqual(['expect.response'])
  const open = await captureAnswer('welcome', { PROOF_KEY: 's3cr3t-of-env' })
  expect(open.removed).toEqual([])
  expect(open.expected).toMatchObject({ response: { body: 'welcome' } })
})
