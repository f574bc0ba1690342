// Posts a payload or a sample of a preset to the running gateway, with the hook token or with the signature that the mapping requires.
import { cut, trimSlashes } from '../base/text.ts'
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { existsSync } from 'node:fs'
import { assemble } from '../gateway/reload/assemble.ts'
import { findPack } from '../gateway/reload/packs.ts'
import { loadConfig } from '../gateway/config/config.ts'
import type { Config } from '../model/config/config.ts'
import { tryParseJson } from '../base/json.ts'
import { toHandedSecretsFile } from '../model/places.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { createGeneration } from '../gateway/generation/generation.ts'
import { signAsSender } from '../gateway/deliveries/own-signature.ts'
import { createHandshakeSecrets } from '../gateway/http/handshake-secrets.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { callGateway, findGatewayAddress, findHookToken, toGatewayProblem } from './gateway/gateway.ts'
import { readInput, type RequestInput } from './requests/input.ts'
import { cutLine, indent } from './terminal/print.ts'
import { buildSample } from './requests/sample.ts'
import { longestAskSeconds, waitForRuns } from './wait.ts'

/**
 * `what`: a file; if no such file exists and the hook is a preset, the name or the event of a fixture. `file`: always a file; `-` is
 * standard input.
 */
type SendOptions = {
  hook: string
  what: string | undefined
  file: string | undefined
  headers: readonly string[]
  /** The seconds to wait for the runs. Undefined: does not wait. */
  wait: number | undefined
}

type OutgoingRequest = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export async function send(context: Context, options: SendOptions): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const { path, headers: given, body } = await buildRequest(context, config, options)
  const { wait } = options
  const headers = wait === undefined ? given : { ...given, prefer: `wait=${Math.min(wait, longestAskSeconds)}` }
  const { url } = findGatewayAddress(dir, config)
  const began = performance.now()
  const { status, text, isReplay } = await withProgress(context, 'Waiting for the answer', () =>
    callGateway(`${url}/${path}`, { method: 'POST', headers, body }),
  )
  if (context.json) context.printJson({ status, body: tryParseJson(text) ?? null, replay: isReplay })
  else printAnswer(context, { status, text, isReplay })
  if (status >= 400) return exitCodes[toGatewayProblem(status, text).kind]
  if (wait === undefined) return exitCodes.ok
  const seconds = Math.max(0, wait - (performance.now() - began) / 1_000)
  return waitForStartedRuns(context, config, { receipt: Receipt.parse(tryParseJson(text) ?? {}), seconds })
}

const Framed = z.union([
  z.object({ frame: z.string() }),
  z.object({ problem: z.object({ frame: z.string() }) }).transform(({ problem }) => problem),
])

/** Prints the answer on one line, and the code frame, which only a gateway in development adds, below it. */
function printAnswer(
  { print }: Context,
  { status, text, isReplay }: { status: number; text: string; isReplay: boolean },
): void {
  const { frame } = Framed.safeParse(tryParseJson(text)).data ?? {}
  const answer = frame === undefined ? text : text.replace(`,"frame":${JSON.stringify(frame)}`, '')
  print([String(status), cutLine(answer, 4_000), isReplay ? '(a replay of the first answer)' : ''].join(' ').trim())
  if (frame !== undefined) print(indent(cut(frame, 4_000)))
}

const Receipt = z
  .object({ runId: z.string(), runIds: z.array(z.string()), status: z.enum(['parked', 'pending']) })
  .partial()
  .catch({})

/** Waits for the runs that the answer names. A parked delivery and a pending one have no run: the command does not wait for them. */
async function waitForStartedRuns(
  context: Context,
  config: Config,
  { receipt, seconds }: { receipt: z.infer<typeof Receipt>; seconds: number },
): Promise<number> {
  const { runId, runIds = runId === undefined ? [] : [runId], status } = receipt
  if (status !== undefined) return status === 'parked' ? exitCodes.broken : exitCodes.limited
  return waitForRuns(context, config, { runIds, seconds })
}

async function buildRequest(
  context: Context,
  config: Config,
  { hook, what, file, headers }: SendOptions,
): Promise<OutgoingRequest> {
  const { dir, note } = context
  const given = file ?? what
  if (given === undefined) {
    throw new Problem(
      'usage-invalid',
      'send needs a payload: a file, "-" for standard input, or a fixture of a preset.',
    )
  }
  const isFile = file !== undefined || given === '-' || existsSync(given)
  const pack = isFile ? undefined : await findPack(dir, hook)
  if (pack === undefined) {
    const path = trimSlashes(hook)
    const proved = await signInput({ dir, config }, path, await readInput(context, { file: given, headers }))
    if (proved.note !== undefined) note(proved.note)
    return proved.withToken ? { ...proved, headers: addHookToken(config, proved.headers) } : proved
  }
  // `buildSample` reports a preset that is missing or invalid
  const known = await assemble(dir, config)
  const sample = buildSample(config, pack, { word: given, now: Date.now(), headers, known })
  // a new key for each send: all sends of a sample have the same delivery id, so only the first one would run
  const keyed = { 'idempotency-key': randomUUID(), ...sample.headers }
  return { ...sample, headers: sample.isSigned ? keyed : addHookToken(config, keyed) }
}

/** Signs the request if its mapping requires that. Throws `usage-invalid` if only the sender can sign. */
async function signInput({ dir, config }: { dir: string; config: Config }, path: string, input: RequestInput) {
  const { mappings, senders, verifiers } = await assemble(dir, config)
  const generation = createGeneration({ config, mappings, transforms: new Map(), senders, verifiers })
  const handed = createHandshakeSecrets({ file: toHandedSecretsFile(dir), clock: Date.now })
  return signAsSender(generation, handed.find, { path, ...input })
}

/** Adds the hook token, unless the request has an `Authorization` header. */
function addHookToken(config: Config, headers: Readonly<Record<string, string>>): Record<string, string> {
  return { authorization: `Bearer ${findHookToken(config)}`, ...headers }
}
