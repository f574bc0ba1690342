// The requests with which a hook can be tried: the fixtures of its transforms, the bundled requests of its senders, and kept requests.
import { stringify } from '../../base/sent-json.ts'
import { isJsonObject, type SentValue } from '../../base/json.ts'
import { listSecretConditions } from '../../model/config/secrets.ts'
import type { SampleFields, TypedRequest } from '../../model/api/bench.ts'
import { dropCredentials, toLocalHead } from '../../core/mapping/delivery.ts'
import { describeContent, toIsoTime } from '../deliveries/records.ts'
import type { DeliveryHead } from '../../core/model/delivery.ts'
import { normalizeHookName } from '../../core/model/mapping-rules.ts'
import type { Generation } from '../generation/generation.ts'
import type { Hook } from '../../core/mapping/hook.ts'
import type { StoreReader } from '../../store/store.ts'
import { resolveTransformsRoot } from '../../core/transforms/root.ts'
import { listBundledRequests } from './bundled.ts'
import { type Fixture, readFixtures } from './fixture-files.ts'

const maxKept = 10
const maxFixtures = 50
/** The maximum number of characters of the bodies in one answer. */
const maxText = 1_000_000

type SampleParts = {
  /** The config directory. */
  readonly dir: string
  readonly generation: Generation
  readonly store: Pick<StoreReader, 'keptDeliveries'>
}

/** `name`: the name of a hook. The kept requests come last. */
export async function listSamples(parts: SampleParts, name: string): Promise<SampleFields[]> {
  const [typed, kept] = await Promise.all([
    listTypedSamples(parts, name),
    parts.store.keptDeliveries({ hook: name, limit: maxKept }),
  ])
  return [
    ...typed,
    ...kept.map((record): SampleFields => {
      const { deliveryId, receivedAt, event = 'delivery' } = record
      const summary = describeContent(record)
      return { kind: 'kept', name: event, deliveryId, receivedAt: toIsoTime(receivedAt), summary }
    }),
  ]
}

type TypedSample = Exclude<SampleFields, { readonly kind: 'kept' }>

/** Those that no sender has sent here: examples, fixtures, and requests that are written after the documentation of a sender. */
export async function listTypedSamples(
  { dir, generation }: Omit<SampleParts, 'store'>,
  name: string,
): Promise<TypedSample[]> {
  const hook = generation.findHook(name)
  const fixtures = await readHookFixtures(dir, generation, hook)
  const bundled = hook.kind === 'built-in' ? [] : listBundledRequests(listSenderNames(hook, name))
  let left = maxText
  const requests = [
    ...fixtures.map((one) => ({ ...one, kind: 'fixture' as const })),
    ...bundled.map((one) => ({ ...one, kind: 'bundled' as const })),
  ].flatMap(({ kind, name: label, request: asked }): TypedSample[] => {
    const request = buildTypedRequest(name, asked)
    left -= request.body.length
    return left < 0 ? [] : [{ kind, name: label, request }]
  })
  const examples = builtInExamples.get(name) ?? []
  return [
    ...examples.map((payload): TypedSample => ({
      kind: 'bundled',
      name: 'example',
      request: toExample(name, payload),
    })),
    ...requests,
  ]
}

// a Map: a hook may have the name `constructor`
const builtInExamples: ReadonlyMap<string, readonly SentValue[]> = new Map([
  ['wake', [{ text: 'The backup of db-1 is three days old.', mode: 'now' }]],
  ['agent', [{ name: 'CI', message: 'The build of main failed. What is the next step?' }]],
])

function toExample(hook: string, payload: SentValue): TypedRequest {
  return buildTypedRequest(hook, { headers: {}, query: {}, payload })
}

async function readHookFixtures(dir: string, { config }: Generation, hook: Hook) {
  const modules = new Set(hook.mappings.flatMap(({ mapping }) => mapping.transform?.module ?? []))
  if (modules.size === 0) return []
  const root = await resolveTransformsRoot(dir, config.hooks)
  const files = await Promise.all([...modules].map((module) => readFixtures(root, module)))
  return files
    .flat()
    .flatMap((file) => (file.kind === 'fixture' ? [{ name: file.name.replace(/\.json$/, ''), ...file.fixture }] : []))
    .slice(0, maxFixtures)
}

/** The names under which requests for a hook may be bundled: its own, and those of its senders and transforms. */
function listSenderNames({ mappings }: Hook, name: string): ReadonlySet<string> {
  return new Set([
    name,
    ...mappings.flatMap(({ match: { source }, mapping: { verify, transform }, provenSender }) => [
      ...(typeof source === 'string' ? [source] : []),
      ...(verify === undefined ? [] : [verify.scheme]),
      ...(transform === undefined ? [] : [transform.module.replace(/\.\w+$/, '')]),
      ...(provenSender === undefined ? [] : [provenSender.source]),
    ]),
  ])
}

/** The request of a fixture as a typed one. A payload of texts becomes a form if that is the content type; every other payload becomes JSON. */
export function buildTypedRequest(
  hook: string,
  { headers, query, payload }: Pick<Fixture['request'], 'headers' | 'query' | 'payload'>,
): TypedRequest {
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  const others = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'content-type')
  if (/^application\/x-www-form-urlencoded\b/i.test(type) && isTextObject(payload)) {
    const body = new URLSearchParams(payload).toString()
    return { hook, headers: Object.fromEntries([['content-type', type], ...others]), query, body }
  }
  const body = stringify(payload, 2)
  return { hook, headers: Object.fromEntries([['content-type', 'application/json'], ...others]), query, body }
}

function isTextObject(payload: SentValue): payload is Record<string, string> {
  return isJsonObject(payload) && Object.values(payload).every((value) => typeof value === 'string')
}

/**
 * The head of a typed request. It is admitted with every credential that the mappings of the hook may require. Like the headers of a stored
 * request, its headers have no credential.
 */
export function buildTypedHead({ config }: Generation, hook: Hook, request: TypedRequest): DeliveryHead {
  const given: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(request.headers)) given[name.toLowerCase()] = value
  // the mask of a kept request stands for the secret that the mapping compares
  for (const [name, secret] of hook.mappings.flatMap(({ mapping }) => [...listSecretConditions(mapping)]))
    if (given[name] === '[secret]') given[name] = secret
  const headers = dropCredentials(given, hook.secretHeaders)
  headers['content-type'] ??= 'application/json'
  const verifiedBy = hook.signed[0]?.provenSender.source
  const path = normalizeHookName(request.hook)
  return toLocalHead(hook, { prefix: config.hooks.path, path, headers, query: request.query, verifiedBy })
}
