// signal-cli as a daemon with --http: JSON-RPC at /api/v1/rpc, and /api/v1/check.
// https://github.com/AsamK/signal-cli/blob/master/man/signal-cli-jsonrpc.5.adoc
import { z } from 'zod'
import { type Loopback, type Reply, startLoopback } from './loopback.ts'

const Send = z.strictObject({
  jsonrpc: z.literal('2.0'),
  id: z.string(),
  method: z.literal('send'),
  params: z
    .strictObject({
      account: z.string().optional(),
      recipient: z.array(z.string()).optional(),
      groupId: z.string().optional(),
      username: z.array(z.string()).optional(),
      message: z.string().min(1),
      textStyle: z.array(z.string().regex(/^\d+:\d+:(BOLD|ITALIC|SPOILER|STRIKETHROUGH|MONOSPACE)$/)).optional(),
    })
    .refine(({ recipient, groupId, username }) => [recipient, groupId, username].filter(Boolean).length === 1),
})
type Send = z.infer<typeof Send>

export type ResultType =
  | 'SUCCESS'
  | 'NETWORK_FAILURE'
  | 'UNREGISTERED_FAILURE'
  | 'IDENTITY_FAILURE'
  | 'RATE_LIMIT_FAILURE'
  | 'INVALID_PRE_KEY_FAILURE'

export type FakeSignal = Loopback & { readonly posted: readonly Send['params'][] }

/** `accounts`: the accounts of a daemon that was started without an account. Requests must then name one of the accounts. */
export async function startFakeSignal({ accounts }: { accounts?: readonly string[] } = {}): Promise<FakeSignal> {
  const posted: Send['params'][] = []
  const loopback = await startLoopback(({ method, path, headers, body }) => {
    if (method === 'GET' && path === '/api/v1/check') return { status: 200, body: '' }
    if (method !== 'POST' || path !== '/api/v1/rpc') return { status: 404, body: '' }
    if (headers['content-type']?.startsWith('application/json') !== true) return { status: 415, body: '' }
    const request = Send.safeParse(body)
    if (!request.success) return buildRpcError(-32600, request.error.message)
    const { params } = request.data
    if (accounts !== undefined && (params.account === undefined || !accounts.includes(params.account))) {
      return buildRpcError(-32602, 'Method requires valid account parameter')
    }
    posted.push(params)
    const timestamp = 1_700_000_000_000 + posted.length
    const results = [{ recipientAddress: { number: '+15550100' }, type: 'SUCCESS' }]
    return { status: 200, body: { jsonrpc: '2.0', result: { timestamp, results }, id: request.data.id } }
  })
  return { ...loopback, posted }
}

/** An error in signal-cli's format, with the results of the recipients if sending had begun. */
export function buildRpcError(code: number, message: string, results?: readonly object[]): Reply {
  const data = results === undefined ? null : { response: { timestamp: 1_700_000_000_000, results } }
  return { status: 200, body: { jsonrpc: '2.0', error: { code, message, data }, id: 'any' } }
}

/** The result for the only recipient. */
export function toResult(type: ResultType, rest: object = {}): object {
  return { recipientAddress: { number: '+15550100' }, type, ...rest }
}
