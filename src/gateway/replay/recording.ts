// A recording: kept requests without their secrets, one JSON object a line, for a replay on a machine without the store.
import { z } from 'zod'
import { isJsonObject, type SentValue, tryParseJson } from '../../base/json.ts'
import { stringify, tryParseSentJson } from '../../base/sent-json.ts'
import { toLocalHead } from '../../core/mapping/delivery.ts'
import { toIsoTime } from '../deliveries/records.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'
import type { KeptQuery } from '../../store/queries.ts'
import type { KeptDelivery } from '../../store/records.ts'
import { buildCaptureSource } from './capture.ts'
import type { GenerationParts } from './fixtures.ts'

const Head = z.strictObject({ recording: z.literal('hookloom'), version: z.literal(1) })

const texts = z.record(z.string(), z.string())
const RecordedRequest = z.strictObject({
  deliveryId: z.string().min(1).max(100),
  receivedAt: z.iso.datetime(),
  hook: z.string(),
  source: z.string().nullable(),
  event: z.string().nullable(),
  method: z.string(),
  headers: texts,
  query: texts,
  // no schema: the value is JSON, and a schema would drop a key such as `__proto__`
  payload: z.custom<SentValue>((value) => value !== undefined),
  /** The sender whose proof let the request in; null if it had the hook token. */
  verifiedBy: z.string().nullable(),
})
export type RecordedRequest = z.infer<typeof RecordedRequest>

/** A request of a recording in the form of a kept request. */
export type RecordedDelivery = Pick<KeptDelivery, 'deliveryId' | 'receivedAt' | 'hook' | 'source' | 'event' | 'request'>

/**
 * The request without its secrets, and the places of the removed values. Throws a Problem if the request is too large, or can no longer be
 * read.
 */
export function buildRecordedRequest(
  kept: KeptDelivery,
  parts: Omit<GenerationParts, 'transforms'>,
): { readonly recorded: RecordedRequest; readonly removed: readonly string[] } {
  const { request, deliveryId } = kept
  if (request === undefined) throw new Problem('conflict', 'The request is too large to be kept.')
  const { delivery, safe } = buildCaptureSource({ record: kept, request }, parts)
  const { receivedAt, path: hook, source = null, event = null, method, verifiedBy = null } = delivery
  const { headers, query, payload, removed } = safe
  const recorded = {
    deliveryId,
    receivedAt: toIsoTime(receivedAt),
    hook,
    source,
    event,
    method,
    headers,
    query,
    payload,
    verifiedBy,
  }
  return { recorded, removed }
}

/** Writes the recording. `requests`: the oldest first. */
export function renderRecording(requests: readonly RecordedRequest[]): string {
  const head: z.infer<typeof Head> = { recording: 'hookloom', version: 1 }
  return [head, ...requests].map((line) => `${stringify(line)}\n`).join('')
}

/** `file`: the name in messages. Throws `usage-invalid` with the line. */
export function parseRecording(text: string, file: string): RecordedRequest[] {
  const [first = '', ...lines] = text.split('\n')
  if (!Head.safeParse(tryParseJson(first)).success) {
    throw new Problem('usage-invalid', `${file} is not a recording of this version. "hookloom record" makes one.`)
  }
  return lines.flatMap((line, index) => {
    if (line.trim() === '') return []
    const parsed = RecordedRequest.safeParse(tryParseSentJson(line))
    if (parsed.success) return [parsed.data]
    const where = parsed.error.issues[0]?.path.join('.') ?? ''
    const wrong = where === '' ? 'is not a request of a recording' : `has a wrong "${where}"`
    throw new Problem('usage-invalid', `${file}:${index + 2} ${wrong}. "hookloom record" makes the file again.`)
  })
}

/**
 * Reads a recording like a store: the newest request first. `generations`: the generations that will run the requests. In each of
 * them, a proved request counts as proved for all mappings of its sender, because a recording has neither signatures nor secrets.
 */
export function createRecordingReader(
  requests: readonly RecordedRequest[],
  generations: readonly Generation[],
): { keptDeliveries(query: KeptQuery): Promise<RecordedDelivery[]> } {
  // each once, although two recordings may have been joined: the id is where the next page begins
  const newest = [...new Map(requests.map((one) => [one.deliveryId, one])).values()].toReversed()
  return {
    async keptDeliveries({ limit, before, hook, source, since = 0 }) {
      const from = before === undefined ? 0 : newest.findIndex(({ deliveryId }) => deliveryId === before) + 1
      const isWanted = (one: RecordedRequest) =>
        (hook === undefined || one.hook === hook) &&
        (source === undefined || one.source === source) &&
        Date.parse(one.receivedAt) >= since
      const wanted = newest.slice(from).filter(isWanted)
      return wanted.slice(0, limit).map((one) => buildRecordedDelivery(one, generations))
    },
  }
}

function buildRecordedDelivery(
  { deliveryId, receivedAt, hook: path, source, event, method, headers, query, payload, verifiedBy }: RecordedRequest,
  generations: readonly Generation[],
): RecordedDelivery {
  const signedFor = generations.flatMap(({ findHook }) =>
    findHook(path)
      .signed.filter(({ provenSender }) => provenSender.source === verifiedBy)
      .flatMap(({ identity }) => identity.proves),
  )
  const [base] = generations
  if (base === undefined) throw new Error('a recording is read for at least one generation')
  const prefix = base.config.hooks.path
  const given = { prefix, path, headers: removePrototype(headers), query: removePrototype(query), method }
  const local = toLocalHead(base.findHook(path), { ...given, verifiedBy: verifiedBy ?? undefined })
  const head = { ...local, admitted: { token: verifiedBy === null, signedFor: [...new Set(signedFor)] } }
  return {
    deliveryId,
    receivedAt: Date.parse(receivedAt),
    hook: path,
    source: source ?? undefined,
    event: event ?? undefined,
    request: { head, body: Buffer.from(serializePayload(payload, headers['content-type'])) },
  }
}

function removePrototype(given: Readonly<Record<string, string>>): Record<string, string> {
  return Object.assign(Object.create(null), given)
}

/** The body from which the same payload is read. */
function serializePayload(payload: SentValue, contentType = ''): string {
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType)) {
    // only for a text or an XML body: JSON has another content type, or none
    const isText = typeof payload === 'string' && contentType !== '' && !/\bjson\b/i.test(contentType)
    return isText ? payload : stringify(payload)
  }
  const fields = isJsonObject(payload) ? Object.entries(payload) : []
  const isForm =
    fields.length > 0 && fields.every(([, value]) => [value].flat().every((one) => typeof one === 'string'))
  if (!isForm) return new URLSearchParams({ payload: stringify(payload) }).toString()
  return new URLSearchParams(
    fields.flatMap(([name, value]) => [value].flat().map((one): [string, string] => [name, String(one)])),
  ).toString()
}
