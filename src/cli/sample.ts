// The bundled requests of a preset, addressed to the path and signed with the key that this configuration gives it.
import { readdirSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { presets } from '../../presets/index.ts'
import { nearestOf } from '../loader/nearest.ts'
import type { Config } from '../model/config.ts'
import type { JsonValue } from '../model/json.ts'
import type { Preset } from '../model/preset.ts'
import { Problem } from '../model/problem.ts'
import { VerifySettings } from '../model/verify.ts'
import { detectSource, senderNamed, toEvent } from '../pipeline/sources.ts'
import { signRequest, stampPayload } from '../pipeline/verifiers/sign.ts'
import { inPackage } from './package.ts'

const Fixture = z.object({
  request: z.object({ headers: z.record(z.string(), z.string()), payload: z.json() }),
})

export type Sample = {
  /** The hook's name in this configuration. */
  readonly path: string
  /** Signed where the preset asks for it: then the hook token does not belong beside it. */
  readonly isSigned: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export function findPreset(name: string): Preset | undefined {
  return presets.find((preset) => preset.name === name)
}

/** A fixture of an enabled preset by its name, with or without `.json`, or by its event. Throws with the names that there are. */
export function toSample(config: Config, preset: Preset, { word, now }: { word: string; now: number }): Sample {
  const { path, verify } = toOwn(config, preset)
  const { headers, payload } = findFixture(preset.name, word)
  const stamped = verify === undefined ? payload : stampPayload(verify, payload, now)
  const all = { 'content-type': 'application/json', ...headers }
  const body = toBody(stamped, all['content-type'])
  if (verify === undefined) return { path, isSigned: false, headers: all, body }
  const url = `${config.hooks.path}/${path}`
  const proof = signRequest(verify, { body: Buffer.from(body), now, method: 'POST', url, headers: all })
  return { path, isSigned: true, headers: { ...all, ...proof }, body }
}

/** Path and proof that the entry of the preset asks for; of several entries, the first. */
function toOwn(config: Config, preset: Preset): { path: string; verify: VerifySettings | undefined } {
  const entry = config.hooks.presets.find((given) => (typeof given === 'string' ? given : given.name) === preset.name)
  if (entry === undefined) {
    throw new Problem(
      'config-invalid',
      `The preset "${preset.name}" is not in hooks.presets. "hookloom add preset ${preset.name}" puts it there.`,
    )
  }
  const { name: _name, ...options } = typeof entry === 'string' ? { name: entry } : entry
  const parsed = preset.options.safeParse(options)
  if (!parsed.success) {
    throw new Problem(
      'config-invalid',
      `The options of preset "${preset.name}" do not hold. "hookloom check" says why.`,
    )
  }
  const [mapping] = preset.build(parsed.data).mappings
  const path = (mapping?.match?.path ?? preset.name).replace(/^\/+|\/+$/g, '')
  return { path, verify: mapping?.verify && VerifySettings.parse(mapping.verify) }
}

function findFixture(preset: string, word: string): { headers: Record<string, string>; payload: JsonValue } {
  const folder = inPackage('presets', preset, 'fixtures')
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .toSorted()
  const read = (name: string) =>
    Fixture.parse(JSON.parse(readFileSync(inPackage('presets', preset, 'fixtures', `${name}.json`), 'utf8'))).request
  const wanted = word.replace(/\.json$/, '')
  const named = names.find((name) => name === wanted)
  if (named !== undefined) return read(named)
  const byEvent = names.map(read).find((request) => {
    const sender = senderNamed(preset) ?? detectSource(request.headers)
    return sender !== undefined && toEvent(sender, request) === word
  })
  if (byEvent !== undefined) return byEvent
  const near = nearestOf(wanted, names)
  const next = near === undefined ? `There are: ${names.join(', ')}.` : `Did you mean ${near}?`
  throw new Problem('usage-invalid', `The preset "${preset}" has no fixture or event "${word}". ${next}`)
}

/** Forms as senders write them, field by field. */
function toBody(payload: JsonValue, contentType: string): string {
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType)) return JSON.stringify(payload)
  const fields = z.record(z.string(), z.string()).parse(payload)
  return new URLSearchParams(fields).toString()
}
