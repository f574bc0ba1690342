// Which delivery id a proof covers, sender by sender.
import { expect, test } from 'vitest'
import type { Coverage, Verifier } from '../../../src/model/verifier.ts'
import { readSignedId } from '../../../src/pipeline/sources.ts'
import { hmacSchemes, now, publicUrl, secretOf, settingsOf, signed, verifierOf } from './verifiers/stage.ts'

const body = Buffer.from('{"id":"evt_1","type":"x"}')

function of(source: string, covers: Coverage): Verifier {
  return { ...verifierOf({ scheme: 'github', secret: 's' }), scheme: source, source, covers }
}

test('an id that the proof names goes before one in the body', () => {
  expect(readSignedId(of('stripe', { id: true, body: true }), { ok: true, id: 'msg_1' }, body)).toBe('msg_1')
})

test('an id in the body is signed where the body is, and only there', () => {
  expect(readSignedId(of('stripe', { id: false, body: true }), { ok: true }, body)).toBe('evt_1')
  expect(readSignedId(of('stripe', { id: false, body: false }), { ok: true }, body)).toBeUndefined()
})

test('no header gives an id, though the body is signed', () => {
  expect(readSignedId(of('github', { id: false, body: true }), { ok: true }, body)).toBeUndefined()
})

test('a body that is no JSON has no id', () => {
  expect(readSignedId(of('stripe', { id: false, body: true }), { ok: true }, Buffer.from('id=1'))).toBeUndefined()
})

test.each(hmacSchemes.filter(({ idHeader }) => idHeader !== undefined).map((scheme) => [scheme.id, scheme] as const))(
  'the proof of %s names the id that it covers',
  async (_, scheme) => {
    expect(await verifierOf(settingsOf(scheme)).verify(signed(scheme))).toEqual({ ok: true, id: 'msg_1' })
  },
)

test.each(hmacSchemes.filter(({ textIsId }) => textIsId === true).map((scheme) => [scheme.id, scheme] as const))(
  'the proof of %s has the same id for the same text alone',
  async (_, scheme) => {
    const verifier = verifierOf({
      ...settingsOf(scheme),
      secret: undefined,
      secrets: [secretOf(scheme), secretOf(scheme, 'other')],
    })
    const idOf = async (signing: Parameters<typeof signed>[1]) => {
      const verified = await verifier.verify(signed(scheme, signing))
      return verified.ok ? verified.id : undefined
    }
    const id = await idOf({})
    expect(id).toMatch(/^[\da-f]{64}$/)
    // under another secret too: the attempts of a sender that changes its secret are one delivery
    expect(await idOf({ which: 'other' })).toBe(id)
    expect(await idOf({ body: '{"event":"x","n":2}' })).not.toBe(id)
    expect(await idOf({ at: now - 1_000 })).not.toBe(id)
  },
)

test.each(hmacSchemes.map((scheme) => [scheme.id, scheme] as const))(
  'what the proof of %s covers is what its text has',
  async (id, scheme) => {
    const verifier = verifierOf({ scheme: id, secret: secretOf(scheme), publicUrl, header: scheme.header })
    const verified = await verifier.verify(signed(scheme))
    expect(verified.ok && verified.id !== undefined).toBe(verifier.covers.id)
    expect(verifier.covers.body).toBe((scheme.template ?? '{body}').includes('{body}'))
  },
)
