// Makes a fixture of a transform from a kept request or a typed one, without its secrets. Writes the file below the transforms root, and
// overwrites nothing.
import { takeStart } from '../../base/text.ts'
import { join } from 'node:path'
import { stringify } from '../../base/sent-json.ts'
import { type Actual, maxFixtureBytes, parseFixture, updateFixture, writeFixture } from './fixture-files.ts'
import { listConfigSecrets, listSecretForms } from '../../model/config/secrets.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import { readPayload } from '../../core/model/body.ts'
import { Problem } from '../../core/model/problem.ts'
import type { NamedMapping } from '../../core/mapping/compile.ts'
import { explain } from './explain.ts'
import type { Generation } from '../generation/generation.ts'
import { createGeneration } from '../generation/generation.ts'
import { type RedactedRequest, redactRequest } from './redact.ts'
import type { CapturedFields } from '../../model/api/replay.ts'
import { buildDelivery } from '../../core/mapping/delivery.ts'
import type { DeliveryRecord, KeptRequest } from '../../store/records.ts'
import { type GenerationParts, runFixture } from './fixtures.ts'

/** A request of the store, or one that was typed in. */
export type CapturableRequest = {
  readonly record: Pick<DeliveryRecord, 'deliveryId' | 'receivedAt' | 'mappingId'>
  readonly request: KeptRequest
}

export type CaptureSource = {
  readonly record: CapturableRequest['record']
  readonly delivery: Delivery
  /** The request without its secrets. */
  readonly safe: RedactedRequest
  readonly mappings: readonly NamedMapping[]
  /** The generation without transforms. */
  readonly generation: Generation
}

/** Throws `conflict` for a body with more than `maxBytes`. */
export function buildCaptureSource(
  { record, request }: CapturableRequest,
  parts: Omit<GenerationParts, 'transforms'>,
  maxBytes = maxFixtureBytes,
): CaptureSource {
  const { config, mappings } = parts
  const { head, body } = request
  // the search for secrets takes time for each byte, so the size is checked first
  if (body.byteLength > maxBytes) throw buildTooLargeProblem(body.byteLength)
  const generation = createGeneration({ ...parts, transforms: new Map() })
  const { deliveryId: id, receivedAt } = record
  const delivery = buildDelivery(head, body, { hook: generation.findHook(head.path), id, receivedAt })
  const safe = redactRequest(
    { ...delivery, payload: readPayload(delivery.body) },
    listConfigSecrets(config, mappings),
    parts.senders,
  )
  return { record, delivery, safe, mappings, generation }
}

/**
 * The module of the delivery's mapping. If the recorded mapping is unknown or unnamed, the delivery is matched again, which runs no code.
 * Throws `conflict` if there is no module.
 */
export async function findModuleOf({ record, delivery, mappings, generation }: CaptureSource): Promise<string> {
  // for a mapping without an id, the record has only its position at that time
  const known = mappings.find(({ id, isUnnamed }) => id === record.mappingId && isUnnamed !== true)
  const id = known?.id ?? (await explain(generation, delivery, () => '')).decision.mappingId
  const module = mappings.find((mapping) => mapping.id === id)?.transform?.module
  if (module !== undefined) return module
  const whose = id === undefined ? 'No mapping takes this delivery' : `The mapping "${id}" has no transform`
  throw new Problem(
    'conflict',
    `${whose}. Name the module of the fixture: "module" in the API, --module <name> of the command.`,
  )
}

type CaptureInput = {
  /** The file name, with or without `.json`. If it is undefined, a name is built from the event and the id. */
  readonly name: string | undefined
  readonly module: string
  /** The real path of the transforms directory. */
  readonly root: string
  readonly parts: GenerationParts
  /** The variables in the `process.env` of the transform. */
  readonly env: Readonly<Record<string, string>>
}

/**
 * Runs the request, and writes the result as the expectation of the fixture, without fields that contain a secret of the configuration or
 * of the environment. If the code fails, the fixture expects that it accepts the request. Throws `usage-invalid` for an invalid name, and
 * `conflict` if the file exists, or if the fixture would be too large or leave the root.
 */
export async function capture(
  { record, delivery, safe }: CaptureSource,
  { name: asked, module, root, parts, env }: CaptureInput,
): Promise<CapturedFields> {
  const name = chooseFileName(asked, delivery)
  const plain = renderFixture(delivery, safe)
  const fixture = parseFixture(plain)
  if (typeof fixture === 'string') throw new Problem('conflict', `This delivery cannot become a fixture: ${fixture}.`)
  const outcome = await runFixture(parts, module, { kind: 'fixture', name, file: join(root, name), fixture })
  const actual: Actual | undefined = outcome.actual?.decision === 'park' ? undefined : outcome.actual
  const secrets = [...listConfigSecrets(parts.config, parts.mappings), ...Object.values(env)]
  const own = actual && removeSecretFields(actual, secrets, plain)
  const text = own === undefined ? plain : updateFixture(plain, own.actual)
  if (Buffer.byteLength(text) > maxFixtureBytes) throw buildTooLargeProblem(Buffer.byteLength(text))
  return {
    file: await writeFixture(root, module, { name, text }),
    module,
    deliveryId: record.deliveryId,
    removed: [...(own?.removed ?? []), ...safe.removed]
      .slice(0, maxPlaces)
      .map((place) => takeStart(place, maxPlaceChars)),
    decision: actual?.decision ?? 'accept',
    note: actual === undefined && !outcome.ok ? takeStart(outcome.diff[0] ?? 'it fails', maxNoteChars) : null,
  }
}

/** Leaves out each field of an action, and the answer, if it contains one of the secrets. */
function removeSecretFields(actual: Actual, secrets: readonly string[], request: string) {
  // a value that is in the request too, such as "production", is not a secret
  const known = listSecretForms(secrets).filter((form) => !request.includes(form))
  const hasSecret = (value: unknown) => {
    const text = JSON.stringify(value)
    return known.some((secret) => text.includes(secret))
  }
  const removed: string[] = []
  const actions = actual.actions.map((action, at) => {
    const kept = Object.entries(action).filter(([name, value]) => {
      if (!hasSecret(value)) return true
      removed.push(`expect.actions[${at}].${name}`)
      return false
    })
    return Object.fromEntries(kept)
  })
  if (actual.response === undefined || !hasSecret(actual.response)) return { actual: { ...actual, actions }, removed }
  removed.push('expect.response')
  return { actual: { ...actual, actions, response: undefined }, removed }
}

// the limits of the answer: a place contains keys of the payload, which the sender chooses
const maxPlaces = 100
const maxPlaceChars = 200
const maxNoteChars = 2_000

function buildTooLargeProblem(bytes: number): Problem {
  return new Problem(
    'conflict',
    `This delivery cannot become a fixture: it has ${bytes.toLocaleString('en')} bytes, and a fixture at most ${maxFixtureBytes.toLocaleString('en')}.`,
  )
}

function chooseFileName(asked: string | undefined, { id, event, path }: Delivery): string {
  if (asked === undefined) {
    const word = (event ?? path)
      .slice(0, 200)
      .toLowerCase()
      .replace(/[^a-z\d]+/g, '-')
    return `${word.replace(/^-|-$/g, '').slice(0, 60) || 'delivery'}-${id.slice(-8)}.json`
  }
  const name = asked.replace(/\.json$/, '')
  if (/^[A-Za-z\d][\w-]{0,99}$/.test(name)) return `${name}.json`
  throw new Problem('usage-invalid', 'The name of a fixture takes letters, digits, "-" and "_", as in "opened".')
}

function renderFixture({ method, path }: Delivery, { headers, query, payload }: RedactedRequest): string {
  const request = {
    path,
    ...(method === 'POST' ? {} : { method }),
    headers,
    ...(Object.keys(query).length === 0 ? {} : { query }),
    payload,
  }
  return `${stringify({ request, expect: { decision: 'accept' } }, 2)}\n`
}
