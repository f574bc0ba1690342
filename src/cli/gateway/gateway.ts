// How a command finds a running gateway and asks its admin port.
import { z } from 'zod'
import type { Config } from '../../model/config/config.ts'
import { toCallableUrl, toLocalUrl } from '../../base/http.ts'
import { tryParseJson } from '../../base/json.ts'
import { type AnyAsked, type Asked, type CallAnswer, type CallName, toRequest } from '../../model/api/ask.ts'
import { Problem, type ProblemCode, problems } from '../../core/model/problem.ts'
import { type ConfigParts, loadConfigParts } from '../../gateway/config/config-parts.ts'
import type { Context } from '../terminal/context.ts'
import { describeWarning } from '../terminal/print.ts'
import { findRunning, type RunningGateway } from './running.ts'
import { listHookTokens } from '../../model/config/plan-settings.ts'

type GatewayAddress = Pick<RunningGateway, 'url' | 'adminUrl'>

/** The address of the gateway of this configuration. Throws `gateway-unreachable` if the port is not known. */
export function findGatewayAddress(dir: string, { server, hooks }: Config): GatewayAddress {
  const running = findRunning(dir)
  if (running !== undefined) return running
  if (server.port === 0 || server.adminPort === 0) throw toUnreachableProblem(undefined)
  return {
    url: `${toLocalUrl(server.host, server.port)}${hooks.path}`,
    adminUrl: toLocalUrl(server.adminHost, server.adminPort),
  }
}

/** The token that commands send. Throws `config-invalid` if there is none. */
export function findHookToken({ hooks }: Config): string {
  const [token] = listHookTokens(hooks)
  if (token !== undefined) return token
  throw new Problem('config-invalid', 'hooks.token is not set, so the gateway accepts no request.')
}

/** The URL of the running gateway's admin port, or of the configured one. Throws `gateway-unreachable` if neither is known. */
function findAdminUrl(dir: string, { server }: ConfigParts): string {
  const running = findRunning(dir)
  if (running !== undefined) return running.adminUrl
  if (server.adminPort === 0) throw toUnreachableProblem(undefined)
  return toLocalUrl(server.adminHost, server.adminPort)
}

type GatewayAnswer = { readonly status: number; readonly text: string; readonly isReplay: boolean }

/** Sends one request. Throws `gateway-unreachable` if no answer comes. */
export async function callGateway(
  url: string,
  request: { method: string; headers?: Readonly<Record<string, string>>; body?: string },
): Promise<GatewayAnswer> {
  try {
    const response = await fetch(toCallableUrl(url), {
      ...request,
      redirect: 'error',
      signal: AbortSignal.timeout(60_000),
    })
    const text = await response.text()
    return { status: response.status, text, isReplay: response.headers.get('idempotent-replay') === 'true' }
  } catch (error) {
    throw toUnreachableProblem(url, error)
  }
}

/** Calls the admin API, with the gateway token. Throws the gateway's refusal as a Problem. */
export async function askAdmin<Name extends CallName>(
  context: Context,
  name: Name,
  ...[asked]: {} extends Asked<Name> ? [asked?: Asked<Name>] : [asked: Asked<Name>]
): Promise<CallAnswer<Name>> {
  // as: an answer that fits the schema of the call
  return (await askAnyCall(context, name, asked)) as CallAnswer<Name>
}

/** Like `askAdmin`, for a call whose name is not known to the compiler. */
export async function askAnyCall(context: Context, name: CallName, asked: AnyAsked = {}): Promise<unknown> {
  const { adminUrl, token } = findAdmin(context)
  const { target, ...request } = toRequest(name, asked)
  const headers = { authorization: `Bearer ${token}` }
  // the schemas take time to load, so they load while the gateway works
  const [{ status, text }, { calls }] = await Promise.all([
    callGateway(`${adminUrl}${target}`, { ...request, headers }),
    import('../../model/api/calls.ts'),
  ])
  if (status !== 200) throw toGatewayProblem(status, text)
  return parseGatewayAnswer<unknown>(calls[name].answer ?? z.never(), { url: adminUrl, text })
}

/** Throws `gateway-unreachable` for what no gateway of this version answers. */
export function parseGatewayAnswer<Answer>(
  schema: z.ZodType<Answer>,
  { url, text }: { readonly url: string; readonly text: string },
): Answer {
  const parsed = schema.safeParse(tryParseJson(text))
  if (parsed.success) return parsed.data
  throw new Problem('gateway-unreachable', `The program at ${url} is not a Hookloom gateway of this version.`)
}

/** Opens the stream of the admin API. Throws the gateway's refusal as a Problem. */
export async function openAdminStream(
  context: Context,
  { headers, signal }: { headers: Readonly<Record<string, string>>; signal: AbortSignal },
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const { adminUrl, token } = findAdmin(context)
  const response = await fetch(`${adminUrl}/api/stream`, {
    headers: { ...headers, authorization: `Bearer ${token}` },
    redirect: 'error',
    signal,
  }).catch((error: unknown) => {
    throw toUnreachableProblem(adminUrl, error)
  })
  if (response.status !== 200 || response.body === null) throw toGatewayProblem(response.status, await response.text())
  return response.body
}

/** The URL of the admin port, and the gateway token. Without a token, throws the problem of the configuration, or `config-invalid` if it has none. */
export function findAdmin(context: Context): { adminUrl: string; token: string } {
  const parts = findConfigParts(context)
  const { token } = parts.gateway
  if (token === undefined && parts.problem !== undefined) throw parts.problem
  if (token === undefined) {
    throw new Problem(
      'config-invalid',
      'gateway.token is not set, so the admin port takes no commands. Set it in .env.',
    )
  }
  return { adminUrl: findAdminUrl(context.dir, parts), token }
}

/** The deliveries, dead jobs or refused requests on which `retry` and `drop` act. No `hook` means all hooks. `since`: in milliseconds since the
 * epoch. */
export type Target =
  | { readonly kind: 'one'; readonly id: string }
  | { readonly kind: 'dead' }
  | { readonly kind: 'parked'; readonly hook: string | undefined }
  | ({ readonly kind: 'refused'; readonly isDry: boolean } & RefusedFilters)

export type RefusedFilters = { readonly hook: string | undefined; readonly since: number | undefined }

type CallInParts = `POST /api/${'parked' | 'refusals'}/${'retry' | 'drop'}`
type Part<Name extends CallInParts> = CallAnswer<Name> & { readonly next?: string | number | undefined }

/** Runs or drops parked deliveries or refused requests, in as many requests as the gateway needs. */
export async function* askInParts<Name extends CallInParts>(
  context: Context,
  name: Name,
  query: NonNullable<Asked<Name>['query']>,
): AsyncGenerator<Part<Name>> {
  let after: string | number | undefined
  do {
    // as: see `askAdmin`
    const part = (await askAnyCall(context, name, { query: { ...query, after } })) as Part<Name>
    yield part
    after = part.next
  } while (after !== undefined)
}

/** The query of a call about refused requests. `isDry`: changes nothing. */
export function toRefusedQuery({ hook, since, isDry = false }: RefusedFilters & { readonly isDry?: boolean }) {
  const from = since === undefined ? undefined : new Date(since).toISOString()
  return { hook, since: from, dryRun: isDry ? 'true' : undefined }
}

/** The Problem that the body of a refusal describes; `gateway-unreachable` if the body is not from a gateway. */
export function toGatewayProblem(status: number, text: string): Problem {
  const body = z.object({ error: z.string(), code: z.string() }).safeParse(tryParseJson(text))
  if (!body.success)
    return new Problem('gateway-unreachable', `The program that answered ${status} is not a Hookloom gateway.`)
  const { error, code } = body.data
  return new Problem(isProblemCode(code) ? code : 'internal-error', error)
}

function isProblemCode(code: string): code is ProblemCode {
  return Object.hasOwn(problems, code)
}

function toUnreachableProblem(url: string | undefined, cause?: unknown): Problem {
  const where = url === undefined ? 'No gateway runs here' : `No gateway answers at ${new URL(url).origin}`
  return new Problem(
    'gateway-unreachable',
    `${where}. Start one with "hookloom start", or "hookloom dev" for development.`,
    {
      cause,
    },
  )
}

const knownParts = new WeakMap<Context, ConfigParts>()

/**
 * The part of the configuration that a command needs to ask a running gateway: where the store is, and how to reach the gateway. If the
 * rest is invalid, prints one warning and continues.
 */
export function findConfigParts(context: Context): ConfigParts {
  const found = knownParts.get(context)
  if (found !== undefined) return found
  const parts = loadConfigParts(context)
  knownParts.set(context, parts)
  if (parts.problem !== undefined) context.note(describeWarning(parts.problem))
  return parts
}
