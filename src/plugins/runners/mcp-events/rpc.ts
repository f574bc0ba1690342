// JSON-RPC over the streamable HTTP transport of MCP 2026-07-28, which has no sessions. https://modelcontextprotocol.io/specification/2026-07-28/basic
import { z } from 'zod'
import { tryParseJson } from '../shared/kit.ts'

export const protocolVersion = '2026-07-28'

/** The codes that MCP Events adds. https://developers.openai.com/plugins/build/mcp-events */
export const rpcCodes = {
  invalidParams: -32_602,
  notFound: -32_011,
  forbidden: -32_012,
  exhausted: -32_013,
  unsupported: -32_014,
  callback: -32_015,
} as const
const methodNotFound = -32_601
const headerMismatch = -32_020
const unsupportedVersion = -32_022

/** The errors that have a status of their own; all others are 200. */
const statuses: Readonly<Record<number, number>> = {
  [-32_700]: 400,
  [-32_600]: 400,
  [methodNotFound]: 404,
  [headerMismatch]: 400,
  [unsupportedVersion]: 400,
}

/** An error in an answer. Its message and its data are for the client: no secret, and nothing of another subscriber. */
export class RpcFailure extends Error {
  readonly code: number
  readonly data: object | undefined
  constructor(code: number, message: string, data?: object) {
    super(message)
    this.code = code
    this.data = data
  }
}

export const failMethod = () => new RpcFailure(methodNotFound, 'Method not found')

const Call = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string().max(200), z.int()]).optional(),
  method: z.string().max(200),
  params: z.looseObject({ _meta: z.looseObject({}).optional() }).optional(),
})
const versionKey = 'io.modelcontextprotocol/protocolVersion'

/** `id`: undefined for a notification. */
export type RpcCall = {
  readonly id: string | number | undefined
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

/** Throws an `RpcFailure` for what is no call of this protocol version. */
export async function readRpcCall(request: Request): Promise<RpcCall> {
  const given = tryParseJson(await request.text())
  if (given === undefined) throw new RpcFailure(-32_700, 'Parse error')
  const { data: call } = Call.safeParse(given)
  if (call === undefined) throw new RpcFailure(-32_600, 'Invalid Request')
  const { id, method, params = {} } = call
  const version = request.headers.get('mcp-protocol-version')
  // an older client sends no header with its first request, and reads from this error what it may use
  if (version !== protocolVersion) {
    const data = { supported: [protocolVersion], requested: (version ?? '').slice(0, 40) }
    throw new RpcFailure(unsupportedVersion, 'Unsupported protocol version', data)
  }
  const { _meta: meta } = params
  const claimed = meta?.[versionKey]
  // a proxy may route by the headers, so they must say what the body says
  if (request.headers.get('mcp-method') !== method || (claimed !== undefined && claimed !== version))
    throw new RpcFailure(headerMismatch, 'A header and the body disagree')
  return { id, method, params }
}

/** Throws an `RpcFailure` with the path of the first fault. */
export function parseParams<Schema extends z.ZodType>(schema: Schema, params: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(params)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new RpcFailure(rpcCodes.invalidParams, `Invalid params: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`)
}

export function toResultResponse(id: RpcCall['id'], result: object): Response {
  return Response.json({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } })
}

export function toErrorResponse(id: RpcCall['id'], { code, message, data }: RpcFailure): Response {
  const error = { code, message, ...(data && { data }) }
  return Response.json({ jsonrpc: '2.0', id: id ?? null, error }, { status: statuses[code] ?? 200 })
}
