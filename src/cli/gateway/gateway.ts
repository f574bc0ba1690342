// How a command finds a running gateway and asks its admin port.
import { z } from 'zod'
import { type Config, listHookTokens } from '../../model/config/config.ts'
import { toCallableUrl, toLocalUrl } from '../../base/http.ts'
import { tryParseJson } from '../../base/json.ts'
import { Problem, type ProblemCode, problems } from '../../model/problem.ts'
import { type ConfigParts, loadConfigParts } from '../../config/config-parts.ts'
import type { Context } from '../terminal/context.ts'
import { describeWarning } from '../terminal/print.ts'
import { findRunning, type RunningGateway } from './running.ts'

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
  request: { method: 'GET' | 'POST'; headers?: Readonly<Record<string, string>>; body?: string },
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

/** Sends one request to the admin API, with the gateway token. Throws the gateway's refusal as a Problem. */
export async function askAdmin<T>(
  context: Context,
  { method, path, body, answer }: { method: 'GET' | 'POST'; path: string; body?: object; answer: z.ZodType<T> },
): Promise<T> {
  const { adminUrl, token } = findAdmin(context)
  const { status, text } = await callGateway(`${adminUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (status !== 200) throw toGatewayProblem(status, text)
  const parsed = answer.safeParse(tryParseJson(text))
  if (parsed.success) return parsed.data
  throw new Problem('gateway-unreachable', `The program at ${adminUrl} is not a Hookloom gateway of this version.`)
}

/** Opens a streamed answer of the admin API. Throws the gateway's refusal as a Problem. */
export async function openAdminStream(
  context: Context,
  { path, headers, signal }: { path: string; headers: Readonly<Record<string, string>>; signal: AbortSignal },
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const { adminUrl, token } = findAdmin(context)
  const response = await fetch(`${adminUrl}${path}`, {
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

/** Runs or drops the parked deliveries, of all hooks or of one, in as many requests as the gateway needs. */
export async function* rerunOrDropParked<T extends { readonly next?: string | undefined }>(
  context: Context,
  { what, hook, answer }: { what: 'retry' | 'drop'; hook: string | undefined; answer: z.ZodType<T> },
): AsyncGenerator<T> {
  let after: string | undefined
  do {
    const query = new URLSearchParams({
      ...(hook === undefined ? {} : { hook }),
      ...(after === undefined ? {} : { after }),
    })
    const part = await askAdmin(context, { method: 'POST', path: `/api/parked/${what}?${query}`, answer })
    yield part
    after = part.next
  } while (after !== undefined)
}

/** The deliveries, dead jobs or refused requests on which `retry` and `drop` act. No `hook` means all hooks. `since`: in milliseconds since the
 * epoch. */
export type Target =
  | { readonly kind: 'one'; readonly id: string }
  | { readonly kind: 'dead' }
  | { readonly kind: 'parked'; readonly hook: string | undefined }
  | ({ readonly kind: 'refused'; readonly isDry: boolean } & RefusedFilters)

export type RefusedFilters = { readonly hook: string | undefined; readonly since: number | undefined }

/** Runs or drops refused requests that are kept, in as many requests as the gateway needs. `isDry`: changes nothing. */
export async function* rerunOrDropRefused<T extends { readonly next?: number | undefined }>(
  context: Context,
  asked: RefusedFilters & { what: 'retry' | 'drop'; isDry?: boolean; answer: z.ZodType<T> },
): AsyncGenerator<T> {
  const { what, hook, since, isDry = false, answer } = asked
  let after: number | undefined
  do {
    const query = new URLSearchParams({
      ...(hook === undefined ? {} : { hook }),
      ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
      ...(isDry ? { dryRun: 'true' } : {}),
      ...(after === undefined ? {} : { after: String(after) }),
    })
    const part = await askAdmin(context, { method: 'POST', path: `/api/refusals/${what}?${query}`, answer })
    yield part
    after = part.next
  } while (after !== undefined)
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
