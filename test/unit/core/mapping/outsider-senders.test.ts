// Senders of plugins: in the list, they are recognised, read and proved as the built-in ones are.
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'
import { defineSender, type SchemeRow, type SenderDefinition } from '../../../../src/define.ts'
import { toJsonBody } from '../../../../src/core/model/body.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { safeParsePlugin } from '../../../../src/model/definitions.ts'
import { Mapping } from '../../../../src/core/model/mapping.ts'
import { buildDelivery, toLocalHead } from '../../../../src/core/mapping/delivery.ts'
import { isAboutOwnComment, readPlace } from '../../../../src/gateway/generation/event-place.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import { createSenders } from '../../../../src/gateway/proofs/senders.ts'
import { readDeliveryId, readEvent } from '../../../../src/core/mapping/sources.ts'
import { signRequest } from '../../../../src/gateway/proofs/verifiers/sign.ts'
import { senderRows } from '../../../../src/plugins/senders/index.ts'
import { reasonOf, requestOf, verifierOf } from '../../gateway/proofs/verifiers/stage.ts'

const hmac: SchemeRow = {
  kind: 'hmac',
  header: 'x-harbour-signature',
  handshakes: [
    { method: 'GET', signed: false, answer: ({ url }) => ({ text: new URL(url, 'http://a').search.slice(1) }) },
  ],
  confidence: 'medium',
}
const inCode: SchemeRow = {
  id: 'harbour-code',
  kind: 'code',
  code: {
    headers: ['X-Harbour-Pass'],
    verify({ headers }, { secrets }) {
      if (headers['x-harbour-pass'] === 'sunk') throw new TypeError('sunk')
      if (secrets.includes(headers['x-harbour-pass'] ?? '')) return { ok: true, id: 'tide-1' }
      return { ok: false, fault: 'sender', reason: 'The pass is wrong.' }
    },
    sign: (_, { secrets }) => ({ 'X-Harbour-Pass': secrets[0] ?? '' }),
  },
  confidence: 'medium',
}
const harbour = defineSender({
  name: 'harbour',
  label: 'The harbour',
  docs: 'https://harbour.example/webhooks',
  marks: [{ header: 'x-harbour-event' }],
  event: [{ in: 'header', name: 'x-harbour-event' }],
  deliveryId: [{ in: 'body', path: ['tide', 'id'] }],
  answers: { place: (read) => read('quay'), commentId: (read) => read('comment') },
  schemes: [
    { ...hmac, id: 'harbour' },
    { ...inCode, id: 'harbour-code' },
  ],
})
const senders = createSenders([...senderRows, harbour], 'hash-of-the-plugin')
const secret = 'a secret of the harbour'

describe('a sender of a plugin', () => {
  test('is recognised by its mark, and has its event and its delivery id', () => {
    const headers = { 'x-harbour-event': 'ebb' }
    const sender = senders.recognise({ headers })
    expect([sender?.facts.name, sender?.shownBy]).toEqual(['harbour', 'headers'])
    const given = { headers, body: toJsonBody({ tide: { id: 7 } }) }
    expect(sender && [readEvent(sender, given), readDeliveryId(sender, given)]).toEqual(['ebb', '7'])
    expect(builtInSenders.recognise({ headers })).toBeUndefined()
  })

  test('does not come before a built-in sender', () => {
    const headers = { 'x-harbour-event': 'ebb', 'x-github-event': 'push' }
    expect(senders.recognise({ headers })?.facts.name).toBe('github')
  })

  test('proves its requests by a scheme of its row, and a wrong proof is refused', async () => {
    const verifier = verifierOf({ scheme: 'harbour', secret }, { senders })
    const sign = (key: string) => ({ 'x-harbour-signature': createHmac('sha256', key).update('{}').digest('hex') })
    expect(await verifier.verify(requestOf(sign(secret), '{}'))).toEqual({ ok: true })
    expect(reasonOf(await verifier.verify(requestOf(sign('another'), '{}')))).toContain('No signature matches')
    expect(() => verifierOf({ scheme: 'harbour', secret })).toThrow(/"harbour" does not exist/)
  })

  test('proves its requests by own code, which signs too', async () => {
    const verifier = verifierOf({ scheme: 'harbour-code', secret }, { senders })
    expect(verifier.source).toBe('harbour')
    const given = { body: Buffer.from('{}'), now: 0, method: 'POST', url: '/hooks/harbour' }
    const signed = signRequest({ scheme: 'harbour-code', secret }, given, { senders })
    expect(await verifier.verify(requestOf(signed))).toEqual({ ok: true, id: 'tide-1' })
    expect(reasonOf(await verifier.verify(requestOf({ 'x-harbour-pass': 'no' })))).toBe('The pass is wrong.')
    expect(reasonOf(await verifier.verify(requestOf({ 'x-harbour-pass': 'sunk' })))).toContain('threw')
  })

  test.each([
    ['reports', () => 'needs verify.topicArn: the quay.', 'The scheme "harbour" needs verify.topicArn: the quay.'],
    ['throws', () => JSON.parse('{'), 'The scheme "harbour" cannot be checked: check() threw an exception.'],
  ])('makes the configuration invalid if its check of the settings %s', (_, check, message) => {
    const { schemes: _schemes, ...row } = harbour
    const code = { headers: [], check, verify: () => ({ ok: true }) as const }
    const own = createSenders([{ ...row, docs: '', scheme: { kind: 'code', code, confidence: 'medium' } }])
    expect(() => verifierOf({ scheme: 'harbour', secret }, { senders: own })).toThrow(message)
  })

  test('answers its handshake, but no text with markup', async () => {
    const { handshake } = verifierOf({ scheme: 'harbour', secret }, { senders })
    const ask = (url: string) => handshake(requestOf({}, '', { method: 'GET', url }), { verified: false, armed: false })
    expect(await ask('/hooks/harbour?ahoy')).toMatchObject({ status: 200, body: 'ahoy' })
    expect(await ask("/hooks/harbour?<b>'ahoy'</b>")).toBeUndefined()
  })

  test('names the place for a reply only with a proof', () => {
    const body = toJsonBody({ quay: 'north', comment: 'c1' })
    const proved = senders.recognise({ headers: {}, verifiedBy: 'harbour' })
    expect(readPlace({ sender: proved, body })).toMatchObject({ channel: 'harbour', to: 'north' })
    const shown = senders.recognise({ headers: { 'x-harbour-event': 'ebb' } })
    expect(readPlace({ sender: shown, body })).toBeUndefined()
    expect(isAboutOwnComment({ sender: shown, body })).toBe(false)
  })

  test('gives a delivery its source and its event in the pipeline, and changes the generation', () => {
    const mapping = { ...Mapping.parse({ match: { path: 'tide', event: 'ebb' }, messageTemplate: 'm' }), id: 'tide' }
    const config = ConfigSchema.parse({ hooks: { enabled: true, token: 't'.repeat(24) } })
    const generation = createGeneration({ config, mappings: [mapping], transforms: new Map(), senders })
    const hook = generation.findHook('tide')
    const head = toLocalHead(hook, { prefix: '/hooks', path: 'tide', headers: { 'x-harbour-event': 'ebb' } })
    const delivery = buildDelivery(head, Buffer.from('{}'), { hook, id: 'd', receivedAt: 0 })
    expect([delivery.source, delivery.event]).toEqual(['harbour', 'ebb'])
    expect(hook.find(delivery).mapping?.id).toBe('tide')
    const without = createGeneration({ config, mappings: [mapping], transforms: new Map(), senders: builtInSenders })
    expect(without.id).not.toBe(generation.id)
  })
})

describe('the check of a sender of a plugin', () => {
  const check = (changes: object) => {
    const parsed = safeParsePlugin(defineSender({ ...harbour, ...changes } as SenderDefinition))
    return parsed.ok ? [] : parsed.faults
  }

  test('every built-in sender passes it, and so does one of a plugin', () => {
    expect(safeParsePlugin(senderRows)).toMatchObject({ ok: true })
    expect(check({})).toEqual([])
  })

  test.each([
    ['a misspelt field', { deliveryID: [] }, '"deliveryID" is not a known field'],
    [
      'a header in upper case',
      { marks: [{ header: 'X-A' }] },
      'marks[0].header must be the name of a header, in lower case',
    ],
    [
      'a pattern that remembers',
      { marks: [{ header: 'a', like: /a/g }] },
      'marks[0].like must be a regular expression without the flags g and y',
    ],
    ['an unknown place of a fact', { event: [{ in: 'url' }] }, 'event[0].in must be header, body, key or all'],
    ['no page', { docs: undefined }, 'must have docs and a scheme, or neither of them'],
    ['a scheme twice', { scheme: hmac }, 'must not have scheme and schemes'],
    [
      'an unknown kind of proof',
      { schemes: [{ kind: 'hmak' }] },
      'schemes[0].kind must be hmac, token, basic, ed25519, ecdsa, jwt, concat-hash, client-state or code',
    ],
    [
      'code without a function',
      { schemes: [{ ...inCode, code: { headers: [] } }] },
      'schemes[0].code.verify must be a function',
    ],
  ])('a sender with %s is refused with its path', (_, changes, fault) => {
    expect(check(changes)).toContain(fault)
  })

  test.each([
    ['senders', { ...harbour, name: 'github' }],
    ['schemes', { ...harbour, schemes: [{ ...hmac, id: 'github' }] }],
    ['schemes', { ...harbour, schemes: [{ ...hmac, id: 'token' }] }],
  ])('two %s never have the same name', (what, sender) => {
    expect(() => createSenders([...senderRows, sender as SenderDefinition])).toThrow(`Two ${what} have the name`)
  })
})
