// The bundled requests of a preset, addressed to the path and signed with the key that this configuration gives it.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { presets } from '../../presets/index.ts'
import { nearestOf } from '../model/nearest.ts'
import type { Config } from '../model/config.ts'
import type { JsonValue } from '../model/json.ts'
import type { Preset } from '../model/preset.ts'
import { Problem } from '../model/problem.ts'
import { VerifySettings } from '../model/verify.ts'
import { detectSource, senderNamed, toEvent } from '../pipeline/sources.ts'
import { signRequest, stampPayload } from '../pipeline/verifiers/sign.ts'
import { readInput } from './input.ts'
import { inPackage } from './package.ts'

const Fixture = z.object({ request: z.object({ headers: z.record(z.string(), z.string()), payload: z.json() }) })
type FixtureRequest = z.infer<typeof Fixture>['request']

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

/**
 * A fixture of an enabled preset by its name, with or without `.json`, or by its event. `headers`: `name: value` each; they win
 * over those of the fixture and of the proof. Throws with the names that there are.
 */
export function toSample(
  config: Config,
  preset: Preset,
  { word, now, headers = [] }: { word: string; now: number; headers?: readonly string[] },
): Sample {
  const { path, verify } = toOwn(config, preset)
  const { file, payload } = findFixture(preset.name, word)
  const { headers: given } = readInput(file, headers)
  const body = toBody(verify === undefined ? payload : stampPayload(verify, payload, now), given['content-type'])
  if (verify === undefined) return { path, isSigned: false, headers: given, body }
  const url = `${config.hooks.path}/${path}`
  const proof = signRequest(verify, { body: Buffer.from(body), now, method: 'POST', url, headers: given })
  return { path, isSigned: true, headers: { ...proof, ...given }, body }
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

function findFixture(preset: string, word: string): { file: string; payload: JsonValue } {
  const folder = inPackage('presets', preset, 'fixtures')
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  const all = names.toSorted().map((name) => {
    const file = join(folder, name)
    return { name: name.slice(0, -'.json'.length), file, ...readRequest(file) }
  })
  const wanted = word.replace(/\.json$/, '')
  const found = all.find(({ name }) => name === wanted) ?? all.find((request) => toEventOf(preset, request) === word)
  if (found !== undefined) return found
  const stems = all.map(({ name }) => name)
  const near = nearestOf(wanted, stems)
  const next = near === undefined ? `There are: ${stems.join(', ')}.` : `Did you mean ${near}?`
  throw new Problem('usage-invalid', `The preset "${preset}" has no fixture or event "${word}". ${next}`)
}

function readRequest(file: string): FixtureRequest {
  return Fixture.parse(JSON.parse(readFileSync(file, 'utf8'))).request
}

function toEventOf(preset: string, request: FixtureRequest): string | undefined {
  const sender = senderNamed(preset) ?? detectSource(request.headers)
  return sender && toEvent(sender, request)
}

/** Forms as senders write them, field by field. */
function toBody(payload: JsonValue, contentType: string | undefined): string {
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')) return JSON.stringify(payload)
  const fields = z.record(z.string(), z.string()).parse(payload)
  return new URLSearchParams(fields).toString()
}
