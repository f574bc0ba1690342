// Shows whether each signed mapping accepts the proof of a request. `--arm` lets a mapping accept the secret that its sender sends.
import type { SentValue } from '../base/json.ts'
import { stringify, tryParseSentJson } from '../base/sent-json.ts'
import { trimSlashes } from '../base/text.ts'
import { existsSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import { assemble } from '../gateway/reload/assemble.ts'
import { loadConfig } from '../gateway/config/config.ts'
import type { Config } from '../model/config/config.ts'
import { describeFirstIssue } from '../core/model/issue.ts'
import { toHandedSecretsFile } from '../model/places.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { parsedJson } from '../core/model/values.ts'
import type { VerifyRequest } from '../core/model/verifier.ts'
import { toMappingParts } from '../gateway/generation/generation.ts'
import { type CompiledMapping, compileMapping } from '../core/mapping/compile.ts'
import { createPinnedFetch } from '../gateway/proofs/verifiers/pinned-fetch.ts'
import { createHandshakeSecrets } from '../gateway/http/handshake-secrets.ts'
import type { Context } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'
import { fetchRefused } from './requests/refused.ts'
import { indent, printTable } from './terminal/print.ts'

/** Lets a mapping of the running gateway accept one secret from its sender within ten minutes. */
export async function arm(context: Context, { mappingId }: { mappingId: string }): Promise<number> {
  const armed = await askAdmin(context, 'POST /api/mappings/{id}/arm', { params: { id: mappingId } })
  if (context.json) context.printJson({ mappingId: armed.mappingId, until: armed.until })
  else
    context.print(`${armed.mappingId} accepts one secret until ${armed.until}. Create the webhook at the sender now.`)
  return exitCodes.ok
}

/** `candidate`: whether the request has a proof of this scheme. If not, `ok` is false. */
type ProofReport = {
  readonly mappingId: string
  readonly scheme: string
  readonly candidate: boolean
  readonly ok: boolean
  readonly reason: string
  /** The text that this scheme signs, shortened. Null if the scheme signs no text, or if the request lacks a part of it. */
  readonly signed: string | null
}

/** Checks the proof with each mapping. The exit code is that of `ok` if one accepts it, else that of `denied`. */
export async function explainProofs(
  context: Context,
  { file, mappingId }: { file: string; mappingId: string | undefined },
): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const capture = isRequestId(file) ? await fetchCapture(context, file) : readCapture(file)
  const now = capture.receivedAt ?? Date.now()
  const asked = chooseMappings(await compileSigned(dir, config, now), config, { capture, mappingId })
  const reports: ProofReport[] = []
  for (const mapping of asked) reports.push(await checkProof(mapping, toRequest(capture, mapping, config)))
  if (context.json) for (const report of reports) context.printJson(report)
  else print(context, reports, capture)
  return reports.some(({ ok }) => ok) ? exitCodes.ok : exitCodes.denied
}

const Headers = z.record(z.string(), z.string())
const Capture = z.object({
  method: z.string().default('POST'),
  url: z.string().optional(),
  /** The name of the hook, as in a fixture. */
  path: z.string().optional(),
  headers: Headers.default({}),
  /** A text is the raw body; any other value, and a payload, is serialized as JSON. */
  body: parsedJson.optional(),
  payload: parsedJson.optional(),
  receivedAt: z.union([z.number(), z.iso.datetime({ offset: true })]).optional(),
})

type Capture = Omit<VerifyRequest, 'url'> & {
  readonly url: string | undefined
  readonly path: string | undefined
  /** False: the signed bytes are not known, so a valid proof may be reported as invalid. */
  readonly isRaw: boolean
  readonly receivedAt: number | undefined
}

/** Whether the word is the beginning of a UUID, or "last", and no file has this name. */
function isRequestId(word: string): boolean {
  return (word === 'last' || /^[\da-f][\da-f-]{3,35}$/.test(word)) && !existsSync(word)
}

async function fetchCapture(context: Context, given: string): Promise<Capture> {
  return { ...(await fetchRefused(context, given)), path: undefined, isRaw: true }
}

function readCapture(file: string): Capture {
  const value = readJson(file)
  const inner = z.object({ request: z.object({ payload: parsedJson }).loose() }).safeParse(value)
  const parsed = Capture.safeParse(inner.success ? inner.data.request : value)
  if (!parsed.success) throw new Problem('payload-invalid', `${file}: ${describeFirstIssue(parsed.error, value)}.`)
  const { method, url, path, headers, body, payload, receivedAt } = parsed.data
  const content = body ?? payload
  if (content === undefined) {
    throw new Problem('payload-invalid', `${file} must be {headers, body}, {headers, payload} or a fixture.`)
  }
  return {
    method,
    url: url === undefined ? undefined : removeOrigin(url),
    path: path === undefined ? undefined : trimSlashes(path),
    headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name.toLowerCase(), text])),
    rawBody: Buffer.from(typeof body === 'string' ? body : stringify(content)),
    isRaw: typeof body === 'string',
    receivedAt: typeof receivedAt === 'string' ? Date.parse(receivedAt) : receivedAt,
  }
}

function readJson(file: string): unknown {
  let value: SentValue | undefined
  try {
    value = tryParseSentJson(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new Problem('usage-invalid', `${file} cannot be read.`, { cause })
  }
  // the reason is left out, because it may quote the file
  if (value === undefined) throw new Problem('usage-invalid', `${file} cannot be read as JSON.`)
  return value
}

/** The path and the query of an absolute or relative URL. */
function removeOrigin(url: string): string {
  return url.replace(/^https?:\/\/[^/?#]*/i, '') || '/'
}

/** Compiles the mappings with `verify`, with the secrets that senders gave in a handshake. `now`: the time by which timestamps are judged. */
async function compileSigned(dir: string, config: Config, now: number): Promise<CompiledMapping[]> {
  const known = await assemble(dir, config)
  const clock = () => now
  const handed = createHandshakeSecrets({ file: toHandedSecretsFile(dir), clock })
  const fetch = createPinnedFetch({ now: clock })
  const buildTools = (secretsName: string) => ({
    fetch,
    now: clock,
    handed: () => handed.find(secretsName),
  })
  return known.mappings
    .filter(({ verify }) => verify !== undefined)
    .map((mapping) => compileMapping(mapping, undefined, toMappingParts(known, buildTools)))
}

function chooseMappings(
  all: readonly CompiledMapping[],
  config: Config,
  { capture, mappingId }: { capture: Capture; mappingId: string | undefined },
): CompiledMapping[] {
  if (mappingId !== undefined) {
    const found = all.filter(({ id }) => id === mappingId)
    if (found.length > 0) return found
    const known = all.map(({ id }) => id).join(', ') || 'none'
    throw new Problem('not-found', `No mapping "${mappingId}" verifies its sender. Those that do: ${known}.`)
  }
  const path = capture.path ?? (capture.url === undefined ? undefined : readHookName(capture.url, config))
  if (path === undefined) {
    throw new Problem('usage-invalid', 'The file has no path or url. Name the mapping with --mapping <id>.')
  }
  const found = all.filter(({ match }) => match.path === undefined || normalizeName(match.path) === path)
  if (found.length > 0) return found
  throw new Problem('not-found', `No mapping of the hook "${path}" verifies its sender.`)
}

function readHookName(url: string, { hooks }: Config): string {
  const [target = ''] = url.split('?')
  return normalizeName(target.startsWith(`${hooks.path}/`) ? target.slice(hooks.path.length) : target)
}

function normalizeName(path: string): string {
  return trimSlashes(path.trim())
}

function toRequest({ method, url, path, headers, rawBody }: Capture, { match }: CompiledMapping, { hooks }: Config) {
  return { method, url: url ?? `${hooks.path}/${path ?? normalizeName(match.path ?? '')}`, headers, rawBody }
}

async function checkProof({ id, mapping, verifier }: CompiledMapping, request: VerifyRequest): Promise<ProofReport> {
  if (verifier === undefined) throw new Error(`mapping ${id} has no verifier`)
  const candidate = verifier.isClaimed(request.headers)
  const verified = await verifier.verify(request)
  const reason = verified.ok ? 'the proof is valid' : verified.reason
  const { secret, secrets = [] } = mapping.verify ?? {}
  const signed = verifier.explain(request)
  return {
    mappingId: id,
    scheme: verifier.scheme,
    candidate,
    ok: candidate && verified.ok,
    reason,
    signed: signed === undefined ? null : replaceSecrets(signed, [secret ?? [], secrets].flat()),
  }
}

/** Hides the secrets in a signed text: the template of a scheme may sign a header that contains the secret. */
function replaceSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
}

function print(context: Context, reports: readonly ProofReport[], { isRaw }: Capture): void {
  const rows = reports.map(({ mappingId, scheme, candidate, ok, reason }) => [
    mappingId,
    scheme,
    candidate ? 'yes' : 'no',
    ok ? 'valid' : 'refused',
    reason,
  ])
  printTable(context, ['mapping', 'scheme', 'candidate', 'proof', 'why'], rows)
  // mappings of one preset sign the same text, so each text is shown once
  const texts = new Map(reports.map(({ scheme, signed }) => [`${scheme}\n${signed}`, { scheme, signed }]))
  for (const { scheme, signed } of texts.values()) {
    context.print(`\nThe text that ${scheme} signs${signed === null ? ' cannot be shown.' : `:\n${indent(signed)}`}`)
  }
  if (!isRaw) {
    context.print(
      '\nThe file has no raw body, so the payload was serialized again and may differ from the signed bytes.',
    )
  }
}
