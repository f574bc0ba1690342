// The refusals that the running gateway remembers, with the reasons for the operator. The sender got only a part of these reasons.
import type { RefusalFields } from '../../model/api/refusals.ts'
import { describeTrace, isProofUnchecked } from '../../gateway/deliveries/refused/reasons.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Context } from '../terminal/context.ts'
import { formatTime, indent, renderFields, renderTrace } from '../terminal/print.ts'
import { askAdmin } from './gateway.ts'
import { findIdAmong } from './ids.ts'
import { formatCommand } from '../../base/shell.ts'

/** The refusals, the oldest first. `hook`: only those of this hook. */
export async function fetchRefusals(context: Context, hook?: string): Promise<readonly RefusalFields[]> {
  return (await askAdmin(context, 'GET /api/refusals', { query: { hook } })).refusals
}

/** The refusal whose request id begins with `given`. Undefined if there is none, or if no gateway answers. Throws `conflict` if there are
 * several. */
export async function findRefusal(context: Context, given: string): Promise<RefusalFields | undefined> {
  const refusals = await fetchRefusals(context).catch((error: unknown) => {
    if (error instanceof Problem) return []
    throw error
  })
  const id = findIdAmong(
    refusals.map(({ requestId }) => requestId),
    given,
  )
  return refusals.find(({ requestId }) => requestId === id)
}

const credentials: Readonly<Record<string, string>> = {
  none: 'no credential came',
  'openclaw-header':
    'the token came as x-openclaw-token, which is not read: let the sender use "Authorization: Bearer <token>" or "x-service-token: <token>"',
  'not-bearer': 'the Authorization header is not "Bearer <token>"',
  repeated: 'a credential header came twice',
  'gateway-token': 'the gateway token came, which opens no hook',
  'denied-token': 'a token came that may not send to this hook, or that has expired',
  'wrong-token': 'a wrong token came',
}

export function describeReasons({ status, credential, nearestHook, signature, trace }: RefusalFields): string[] {
  // a signed request needs no token: `signature` or the trace explains its refusal
  const isSigned = signature !== null || !isProofUnchecked(trace)
  const came = status === 401 && (!isSigned || credential !== 'none') ? credentials[credential] : undefined
  return [
    ...(came === undefined ? [] : [came]),
    ...(nearestHook === null ? [] : [`did it mean the hook "${nearestHook}"?`]),
    ...(signature === null ? [] : [signature.why]),
    ...describeTrace(trace),
  ]
}

/** Describes how the operator can run a kept request. */
export function describeKept(hook: string | undefined): string {
  const command =
    hook === undefined ? 'hookloom retry --refused' : formatCommand`hookloom retry --refused --hook ${hook}`
  return `encrypted. When the cause is corrected, "${command}" runs it`
}

export function renderRefusal(refusal: RefusalFields): string {
  const { requestId, receivedAt, client, path, hook, status, code, error, signature, trace, whyNotKept } = refusal
  const fields = renderFields([
    ['state', 'refused'],
    ['received', formatTime(receivedAt)],
    ['client', client],
    ['path', path],
    ['hook', hook ?? ''],
    ['answer', `${status} ${code}: ${error}`],
    ['why', describeReasons(status === 401 ? refusal : { ...refusal, trace: [] }).join('; ')],
    ['kept', refusal.isKept ? describeKept(hook) : whyNotKept === undefined ? '' : `no: ${whyNotKept}`],
    ['ran as', refusal.ranAs ?? ''],
  ])
  const hint = signature === null ? '' : [signature.next, indent(signature.config ?? '')].join('\n\n').trimEnd()
  const parts = [`Refusal ${requestId}`, fields, trace.length === 0 || status === 401 ? '' : renderTrace(trace), hint]
  return parts.filter((part) => part !== '').join('\n\n')
}
