// The spans of refused requests. Without an SDK of OpenTelemetry, no attribute is computed.
import { recordSpan } from '../../base/trace.ts'
import type { RefusedHttpRequest } from './refuse.ts'

/** A refused request has no delivery: its trace has the request id, which `hookloom show` takes. Its path is not recorded. */
export function recordRefusal({ refusal, problem, label, req }: RefusedHttpRequest): void {
  const { requestId } = refusal
  const { code, status } = problem
  const traceparent = req.headers['traceparent']
  recordSpan('hook', {
    traceId: requestId,
    kind: 'server',
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    describeStart: () => ({
      'http.request.method': req.method,
      'http.response.status_code': status,
      'hookloom.hook': label,
      'hookloom.outcome': 'refused',
      'hookloom.problem': code,
    }),
    // the sender's fault is not a failure of the gateway
    isFailed: status >= 500,
  })
}
