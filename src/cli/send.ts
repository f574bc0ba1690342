// Posts a payload or a preset's sample to the running gateway, with the hook token or the signature of its mapping.
import { trimSlashes } from '../base/text.ts'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { assemble } from '../reload/assemble.ts'
import { findPack } from '../reload/packs.ts'
import { loadConfig } from '../config/config.ts'
import { type Config, listHookTokens } from '../model/config.ts'
import { tryParseJson } from '../base/json.ts'
import { exitCodes, Problem } from '../model/problem.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { callGateway, findGatewayAddress, parseRefusal } from './gateway/gateway.ts'
import { readInput } from './requests/input.ts'
import { signAsSender } from './requests/own-signature.ts'
import { cutLine } from './terminal/print.ts'
import { buildSample } from './requests/sample.ts'

/**
 * `what`: a file; if there is no such file and the hook is a preset, a fixture or an event of that preset. `file`: always a file;
 * `-` is standard input.
 */
type SendOptions = {
  hook: string
  what: string | undefined
  file: string | undefined
  headers: readonly string[]
}

type OutgoingRequest = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export async function send(context: Context, options: SendOptions): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const { path, headers, body } = await buildRequest(context, config, options)
  const { url } = findGatewayAddress(dir, config)
  const { status, text, isReplay } = await withProgress(context, 'Waiting for the answer', () =>
    callGateway(`${url}/${path}`, { method: 'POST', headers, body }),
  )
  const answer = cutLine(text, 4_000)
  if (context.json) context.printJson({ status, body: tryParseJson(text) ?? null, replay: isReplay })
  else context.print([String(status), answer, isReplay ? '(a replay of the first answer)' : ''].join(' ').trim())
  if (status < 400) return exitCodes.ok
  return exitCodes[parseRefusal(status, text).kind]
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
    const proved = await signAsSender(
      { dir, config },
      { path, ...(await readInput(context, { file: given, headers })) },
    )
    if (proved.note !== undefined) note(proved.note)
    return proved.withToken ? { ...proved, headers: withToken(config, proved.headers) } : proved
  }
  // buildSample reports a preset that is missing or invalid
  const { verifiers } = await assemble(dir, config)
  const sample = buildSample(config, pack, { word: given, now: Date.now(), headers, verifiers })
  // a sample has the delivery id of its file: without a new key, only the first one would run
  const keyed = { 'idempotency-key': randomUUID(), ...sample.headers }
  return { ...sample, headers: sample.isSigned ? keyed : withToken(config, keyed) }
}

/** Adds the hook token. A proof in the `Authorization` header is not replaced. */
function withToken(config: Config, headers: Readonly<Record<string, string>>): Record<string, string> {
  return { authorization: `Bearer ${findToken(config)}`, ...headers }
}

function findToken({ hooks }: Config): string {
  const [token] = listHookTokens(hooks)
  if (token !== undefined) return token
  throw new Problem('config-invalid', 'hooks.token is not set, so the gateway accepts no request.')
}
