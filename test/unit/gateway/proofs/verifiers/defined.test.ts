import { afterEach, describe, expect, test, vi } from 'vitest'
import type { DefinedVerifier, VerifierDefinition } from '../../../../../src/model/proof.ts'
import { reasonOf, requestOf, verifierOf } from './stage.ts'

function createVerifierOf(verify: (...given: Parameters<VerifierDefinition['verify']>) => unknown): DefinedVerifier {
  // as: at run time, authors may return anything
  const definition = { scheme: 'acme', headers: ['X-Acme'], verify } as VerifierDefinition
  return { kind: 'sound', scheme: 'acme', definition, hash: 'h', describeThrown: () => 'a TypeError at acme.ts:3' }
}

const bySecret = createVerifierOf(({ headers }, { secrets }) =>
  secrets.includes(headers['x-acme'] ?? '') ? { ok: true } : { ok: false, fault: 'sender', reason: 'no' },
)

function verify(defined: DefinedVerifier, given = 's') {
  const verifier = verifierOf({ scheme: 'acme', secret: 's' }, { verifiers: [defined] })
  return verifier.verify(requestOf({ 'x-acme': given }))
}

afterEach(() => void vi.useRealTimers())

describe('schemes in code', () => {
  test('a scheme in code is found by its name and checks requests by its own rule', async () => {
    const verifier = verifierOf({ scheme: 'acme', secret: 's' }, { verifiers: [bySecret] })
    expect(verifier.isClaimed({ 'x-acme': 's' })).toBe(true)
    expect(verifier.isClaimed({})).toBe(false)
    expect(await verify(bySecret)).toEqual({ ok: true })
    expect(await verify(bySecret, 't')).toEqual({ ok: false, fault: 'sender', reason: 'no' })
  })

  test('a scheme in code returns the delivery id that its proof covers, and nothing more', async () => {
    expect(await verify(createVerifierOf(() => ({ ok: true, id: 'd-1', token: 's' })))).toEqual({ ok: true, id: 'd-1' })
  })

  test('a scheme in code does not replace a built-in scheme', async () => {
    const github: DefinedVerifier = { ...bySecret, scheme: 'github' }
    const verifier = verifierOf({ scheme: 'github', secret: 's' }, { verifiers: [github] })
    expect((await verifier.verify(requestOf({ 'x-acme': 's' }))).ok).toBe(false)
  })

  test.each([
    ['throws', () => JSON.parse('the payload')],
    ['rejects', () => Promise.reject(new Error('the payload'))],
  ])(
    'a scheme that %s refuses the request, and the reason has the place and not the message of the exception',
    async (_, code) => {
      const refused = await verify(createVerifierOf(code))
      expect(refused).toEqual({
        ok: false,
        fault: 'sender',
        reason: 'The verifier "acme" threw a TypeError at acme.ts:3.',
      })
    },
  )

  test.each([
    ['true', true],
    ['nothing', undefined],
    ['a text', 'ok'],
    ['an ok that is not a boolean', { ok: 'yes' }],
    ['an id that is not a string', { ok: true, id: 7 }],
    ['an id that is empty', { ok: true, id: '' }],
    ['a refusal without its fault', { ok: false, reason: 'no' }],
    ['another object', new Map([['ok', true]])],
  ])('a scheme that returns %s accepts no request, and counts as a fault of the gateway', async (_, value) => {
    const refused = await verify(createVerifierOf(() => value))
    expect(refused).toMatchObject({ ok: false, fault: 'gateway', reason: expect.stringContaining('must return') })
  })

  test('a scheme that never answers accepts no request, and counts as a fault of the gateway', async () => {
    vi.useFakeTimers()
    const asked = verify(createVerifierOf(() => new Promise(() => {})))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await asked).toMatchObject({
      ok: false,
      fault: 'gateway',
      reason: expect.stringContaining('did not answer'),
    })
  })

  test('the reason of a scheme is one short line without the secret and the signature', async () => {
    const reason = `expected s3cret,\n got sig-from-sender ${'x'.repeat(500)}`
    const defined = createVerifierOf(() => ({ ok: false, fault: 'sender', reason }))
    const verifier = verifierOf({ scheme: 'acme', secret: 's3cret' }, { verifiers: [defined] })
    const said = reasonOf(await verifier.verify(requestOf({ 'x-acme': 'sig-from-sender' })))
    expect(said).toMatch(/^expected …, got … x+$/)
    expect(said.length).toBe(300)
  })
})

describe('schemes whose module does not load', () => {
  const broken: DefinedVerifier = {
    kind: 'broken',
    scheme: 'acme',
    problem: { code: 'verifier-failed', detail: 'hooks/verifiers/acme.ts does not build at acme.ts:1: x.' },
  }

  test('a broken scheme accepts no request, and counts as a fault of the gateway', async () => {
    expect(await verify(broken)).toEqual({ ok: false, fault: 'gateway', reason: broken.problem.detail })
  })

  test('a broken scheme claims every request on its path, because its headers are unknown', () => {
    expect(verifierOf({ scheme: 'acme', secret: 's' }, { verifiers: [broken] }).isClaimed({})).toBe(true)
  })
})
