// Builds a sample request of a preset for this configuration: signed with its key, and for the path of its hook.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { stringify, tryParseSentJson } from '../../base/sent-json.ts'
import { buildPack } from '../../gateway/reload/assemble.ts'
import type { Pack } from '../../gateway/reload/packs.ts'
import { findNearest, trimSlashes } from '../../base/text.ts'
import type { Config } from '../../model/config/config.ts'
import type { SentValue } from '../../base/json.ts'
import { Problem } from '../../core/model/problem.ts'
import { parsedJson } from '../../core/model/values.ts'
import type { KnownSchemes } from '../../gateway/proofs/senders.ts'
import { Mapping } from '../../core/model/mapping.ts'
import type { VerifySettings } from '../../core/model/verify.ts'
import { signRequest, stampPayload } from '../../gateway/proofs/verifiers/sign.ts'
import { findSampleEvent } from '../../gateway/replay/bundled.ts'
import { parseInput } from './input.ts'
import { resolvePackagePath } from '../../base/package.ts'
import { formatCommand } from '../../base/shell.ts'

const Fixture = z.object({ request: z.object({ headers: z.record(z.string(), z.string()), payload: parsedJson }) })
type FixtureRequest = z.infer<typeof Fixture>['request']

export type Sample = {
  /** The name of the hook in this configuration. */
  readonly path: string
  /** Whether the preset requires a signature. If so, the hook token is not sent. */
  readonly isSigned: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * Builds the request from a fixture of the preset, chosen by its name (with or without `.json`) or by its event. `headers`: each is `name:
 * value`; they replace headers of the fixture and of the proof. Throws with the known names if no fixture fits.
 */
export function buildSample(
  config: Config,
  pack: Pack,
  asked: { word: string; now: number; headers?: readonly string[]; known: KnownSchemes },
): Sample {
  const { word, now, headers = [], known } = asked
  const { path, verify } = findPackHook(config, pack)
  const { file, payload } = findFixture(pack, word)
  const { headers: given, fixed } = parseInput(readFileSync(file), { file, headers })
  const body = serializeBody(
    verify === undefined ? payload : stampPayload(verify, payload, now, known),
    given['content-type'],
  )
  if (verify === undefined) return { path, isSigned: false, headers: given, body }
  const url = `${config.hooks.path}/${path}`
  const proof = signRequest(verify, { body: Buffer.from(body), now, method: 'POST', url, headers: given }, known)
  // a fixture may be a recorded request, whose proof is old
  return { path, isSigned: true, headers: { ...given, ...proof, ...fixed }, body }
}

/** The path and the `verify` of the preset's first mapping. */
export function findPackHook(config: Config, pack: Pack): { path: string; verify: VerifySettings | undefined } {
  const { name } = pack
  const entries = config.hooks.presets
  const index = entries.findIndex((given) => (typeof given === 'string' ? given : given.name) === name)
  const entry = entries[index]
  if (entry === undefined) {
    throw new Problem(
      'config-invalid',
      `The preset "${name}" is not in hooks.presets. "${formatCommand`hookloom add preset ${name}`}" adds it.`,
    )
  }
  const { name: _name, ...options } = typeof entry === 'string' ? { name: entry } : entry
  const { mappings } = buildPack(pack, options, `hooks.presets[${index}]`)
  const mapping = Mapping.safeParse(mappings[0]).data
  const path = trimSlashes(mapping?.match.path ?? pack.preset.name)
  return { path, verify: mapping?.verify }
}

function findFixture(pack: Pack, word: string): { file: string; payload: SentValue } {
  const { name: preset } = pack
  const folder = pack.origin?.fixtures ?? resolvePackagePath('presets', preset, 'fixtures')
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  if (names.length === 0) {
    throw new Problem('usage-invalid', `The preset "${preset}" has no fixtures: there is no .json file in ${folder}.`)
  }
  const all = names.toSorted().map((name) => {
    const file = join(folder, name)
    return { name: name.slice(0, -'.json'.length), file, ...readFixtureRequest(file) }
  })
  const wanted = word.replace(/\.json$/, '')
  const found =
    all.find(({ name }) => name === wanted) ??
    all.find((request) => findSampleEvent(pack.preset.name, request) === word)
  if (found !== undefined) return found
  const stems = all.map(({ name }) => name)
  const near = findNearest(wanted, stems)
  const next = near === undefined ? `Known: ${stems.join(', ')}.` : `Did you mean ${near}?`
  throw new Problem('usage-invalid', `The preset "${preset}" has no fixture or event "${word}". ${next}`)
}

function readFixtureRequest(file: string): FixtureRequest {
  try {
    return Fixture.parse(tryParseSentJson(readFileSync(file, 'utf8'))).request
  } catch (cause) {
    throw new Problem('usage-invalid', `${file} must be { "request": { "headers", "payload" } }.`, { cause })
  }
}

/** Serializes the payload as JSON; for a form, with one field for each key. */
function serializeBody(payload: SentValue, contentType: string | undefined): string {
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')) return stringify(payload)
  const fields = z.record(z.string(), z.string()).parse(payload)
  return new URLSearchParams(fields).toString()
}
