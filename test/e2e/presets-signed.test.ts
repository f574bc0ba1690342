// Presets with a proof, over HTTP: signed requests are accepted, and changed ones are refused.
import { generateKeyPairSync, sign } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { presets } from '../../presets/index.ts'
import { type Sample, buildSample } from '../../src/cli/requests/sample.ts'
import { ConfigSchema } from '../../src/gateway/config/keys.ts'
import type { Preset } from '../../src/model/preset.ts'
import { hookToken } from './gateway.ts'
import { readStore, startInside } from './inside.ts'
import { type Reply, send } from './wire.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

const bundled: readonly Preset[] = presets
const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const { privateKey: strangersKey } = generateKeyPairSync('ed25519')
const publicHex = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex')

// base64 as Standard Webhooks requires it, and valid for all other senders
const secret = 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3'
const otherSecret = 'ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4'

type Options = { name: string } & Record<string, string>

function buildOptions(name: string, key = secret): Options {
  if (name === 'discord') return { name, publicKey: publicHex }
  return { name, secret: key, ...(name === 'twilio' ? { publicUrl: `https://gateway.example/hooks/${name}` } : {}) }
}

function findPreset(name: string): Preset {
  const preset = bundled.find((candidate) => candidate.name === name)
  if (preset === undefined) throw new Error(`no preset ${name}`)
  return preset
}

const Fixture = z.object({
  request: z.object({ headers: z.record(z.string(), z.string()), payload: z.json() }),
  expect: z.object({ decision: z.string() }),
})
const folder = join(import.meta.dirname, '../../presets')

/** The first fixture that becomes a run. */
function findFixture(preset: string) {
  for (const file of readdirSync(join(folder, preset, 'fixtures'))) {
    const fixture = Fixture.parse(JSON.parse(readFileSync(join(folder, preset, 'fixtures', file), 'utf8')))
    if (fixture.expect.decision === 'accept') return { file, ...fixture.request }
  }
  throw new Error(`no fixture of ${preset} becomes a run`)
}

/** A sample as the sender of the preset sends it, with its proof. */
function buildSignedSample(options: Options, { asStranger = false } = {}): Sample {
  const { file, headers, payload } = findFixture(options.name)
  if (options.name !== 'discord') {
    const config = ConfigSchema.parse({ hooks: { presets: [options] } })
    const pack = { name: options.name, preset: findPreset(options.name), origin: undefined }
    return buildSample(config, pack, { word: file, now: Date.now(), known: { senders: builtInSenders } })
  }
  const body = JSON.stringify(payload)
  const time = String(Math.floor(Date.now() / 1000))
  const signature = sign(null, Buffer.from(time + body), asStranger ? strangersKey : privateKey).toString('hex')
  const proof = { 'x-signature-ed25519': signature, 'x-signature-timestamp': time }
  return { path: options['path'] ?? 'discord', isSigned: true, headers: { ...headers, ...proof }, body }
}

/** The name of the header with the proof. Throws if there is none. */
function readProofHeader({ headers }: Sample): string {
  const names = [
    'x-hub-signature-256',
    'authorization',
    'x-gitlab-token',
    'x-shopify-hmac-sha256',
    'x-signature-ed25519',
  ]
  const found = Object.keys(headers).find((name) => names.includes(name) || name.endsWith('-signature'))
  if (found === undefined) throw new Error(`no proof among ${Object.keys(headers).join(', ')}`)
  return found
}

/** Their proof is a token alone, which does not cover the body. */
const tokenAlone = new Set(['gitlab', 'alertmanager', 'home-assistant'])

function post(port: number, { path, headers, body }: Sample): Promise<Reply> {
  return send(port, { target: `/hooks/${path}`, headers: Object.entries(headers), body })
}

function removeHeader(sample: Sample, name: string): Sample {
  const { [name]: _dropped, ...headers } = sample.headers
  return { ...sample, headers }
}

/** The sample with one changed character in its signature. */
function breakProof(sample: Sample): Sample {
  const name = readProofHeader(sample)
  const value = sample.headers[name] ?? ''
  const at = value.length - 6
  const broken = value.slice(0, at) + (value[at] === '1' ? '2' : '1') + value.slice(at + 1)
  return { ...sample, headers: { ...sample.headers, [name]: broken } }
}

const start = (...entries: Options[]) =>
  startInside({ config: { hooks: { presets: entries, allowedSessionKeyPrefixes: ['hook:'] } } })

async function readMapping(dir: string, reply: Reply): Promise<string | undefined> {
  const { deliveryId } = z.object({ deliveryId: z.string() }).parse(JSON.parse(reply.body))
  return (await readStore(dir, (reader) => reader.delivery(deliveryId)))?.mappingId
}

const names = bundled.map(({ name }) => name).filter((name) => name !== 'gmail' && name !== 'imap')

describe('presets with a secret', () => {
  test.each(names)(
    'the preset %s accepts a signed request, and refuses it with a changed, a missing or another sender’s proof',
    async (name) => {
      const gateway = await start(buildOptions(name))
      const sample = buildSignedSample(buildOptions(name))
      const postSample = async (changed: Sample) => (await post(gateway.port, changed)).status

      expect(await postSample(breakProof(sample))).toBe(401)
      expect(await postSample(removeHeader(sample, readProofHeader(sample)))).toBe(401)
      expect(await postSample(buildSignedSample(buildOptions(name, otherSecret), { asStranger: true }))).toBe(401)
      expect(await postSample({ ...sample, body: `${sample.body} ` })).toBe(tokenAlone.has(name) ? 200 : 401)
      // another idempotency key: if the proof is a token, the changed body was accepted above, and this request would be its duplicate
      const fresh = { ...sample, headers: { ...sample.headers, 'idempotency-key': 'another-delivery' } }
      const reply = await post(gateway.port, fresh)
      expect([reply.status, reply.headers['idempotent-replay']]).toEqual([200, undefined])
      expect(await readMapping(gateway.dir, reply)).toMatch(new RegExp(`^${name}(-|$)`))
    },
  )

  test.each(names)('the preset %s refuses the hook token', async (name) => {
    const gateway = await start(buildOptions(name))
    const { file: _file, headers, payload } = findFixture(name)
    const withToken = {
      path: name,
      isSigned: false,
      headers: { ...headers, 'content-type': 'application/json', authorization: `Bearer ${hookToken}` },
      body: JSON.stringify(payload),
    }
    expect((await post(gateway.port, withToken)).status).toBe(401)
    const unsigned = await startInside({ config: { hooks: { presets: [name] } } })
    expect((await post(unsigned.port, withToken)).status).toBe(200)
  })
})

describe('two signed presets on one path', () => {
  test('two senders on one path are distinguished by their headers, each with its own secret', async () => {
    const [github, stripe] = [
      { ...buildOptions('github'), path: 'in' },
      { ...buildOptions('stripe', otherSecret), path: 'in' },
    ]
    const gateway = await start(github, stripe)
    const fromGithub = await post(gateway.port, buildSignedSample(github))
    const fromStripe = await post(gateway.port, buildSignedSample(stripe))
    expect(await readMapping(gateway.dir, fromGithub)).toMatch(/^github:in-/)
    expect(await readMapping(gateway.dir, fromStripe)).toMatch(/^stripe:in-/)
    expect((await post(gateway.port, buildSignedSample({ ...github, secret: otherSecret }))).status).toBe(401)
    expect((await post(gateway.port, buildSignedSample({ ...stripe, secret }))).status).toBe(401)
  })

  test('two senders with the same header on one path are distinguished by their secrets', async () => {
    const [alerts, home] = [
      { ...buildOptions('alertmanager'), path: 'in' },
      { ...buildOptions('home-assistant', otherSecret), path: 'in' },
    ]
    const gateway = await start(alerts, home)
    const sample = buildSignedSample(alerts)
    const asHome = { ...sample, headers: { ...sample.headers, authorization: `Bearer ${otherSecret}` } }
    expect(await readMapping(gateway.dir, await post(gateway.port, sample))).toBe('alertmanager:in-firing')
    expect(await readMapping(gateway.dir, await post(gateway.port, asHome))).toBe('home-assistant:in')
  })
})
