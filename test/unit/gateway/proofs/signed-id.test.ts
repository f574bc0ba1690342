// The delivery id that a proof covers, for each sender.
import { expect, test } from 'vitest'
import type { Coverage, Verified } from '../../../../src/core/model/verifier.ts'
import { readSignedId } from '../../../../src/gateway/proofs/check.ts'
import { hmacSchemes, now, publicUrl, secretOf, settingsOf, signed, verifierOf } from './verifiers/stage.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

const { find: findSender } = builtInSenders

const body = Buffer.from('{"id":"evt_1","type":"x"}')

function signedIdOf(source: string, covers: Coverage, verified: Extract<Verified, { ok: true }>, bytes = body) {
  return readSignedId(findSender(source), covers, verified, bytes)
}

test('an id that the proof covers takes precedence over one in the body', () => {
  expect(signedIdOf('stripe', { id: true, body: true }, { ok: true, id: 'msg_1' })).toBe('msg_1')
})

test('an id in the body is signed only if the body is signed', () => {
  expect(signedIdOf('stripe', { id: false, body: true }, { ok: true })).toBe('evt_1')
  expect(signedIdOf('stripe', { id: false, body: false }, { ok: true })).toBeUndefined()
})

test('an id in a header is not signed, even if the body is', () => {
  expect(signedIdOf('github', { id: false, body: true }, { ok: true })).toBeUndefined()
})

test('a body that is not JSON has no signed id', () => {
  expect(signedIdOf('stripe', { id: false, body: true }, { ok: true }, Buffer.from('id=1'))).toBeUndefined()
})

test.each(hmacSchemes.filter(({ idHeader }) => idHeader !== undefined).map((scheme) => [scheme.id, scheme] as const))(
  'the proof of %s returns the id that it covers',
  async (_, scheme) => {
    expect(await verifierOf(settingsOf(scheme)).verify(signed(scheme))).toEqual({ ok: true, id: 'msg_1' })
  },
)

test.each(hmacSchemes.filter(({ textIsId }) => textIsId === true).map((scheme) => [scheme.id, scheme] as const))(
  'the proof of %s has the same id only for the same signed text',
  async (_, scheme) => {
    const verifier = verifierOf({
      ...settingsOf(scheme),
      secret: undefined,
      secrets: [secretOf(scheme), secretOf(scheme, 'other')],
    })
    const findId = async (signing: Parameters<typeof signed>[1]) => {
      const verified = await verifier.verify(signed(scheme, signing))
      return verified.ok ? verified.id : undefined
    }
    const id = await findId({})
    expect(id).toMatch(/^[\da-f]{64}$/)
    // the id is the same under another secret, so that the attempts of a sender that changes its secret are one delivery
    expect(await findId({ which: 'other' })).toBe(id)
    // a body with the time is made of it
    if (scheme.timestamp?.in !== 'body') expect(await findId({ body: '{"event":"x","n":2}' })).not.toBe(id)
    expect(await findId({ at: now - 1_000 })).not.toBe(id)
  },
)

test.each(hmacSchemes.map((scheme) => [scheme.id, scheme] as const))(
  'the proof of %s covers the id and the body if its signed text has them',
  async (id, scheme) => {
    const verifier = verifierOf({ scheme: id, secret: secretOf(scheme), publicUrl, header: scheme.header })
    const verified = await verifier.verify(signed(scheme))
    expect(verified.ok && verified.id !== undefined).toBe(verifier.covers.id)
    expect(verifier.covers.body).toBe((scheme.template ?? '{body}').includes('{body}'))
  },
)
