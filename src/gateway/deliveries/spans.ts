// The spans of decisions on deliveries. Without an SDK of OpenTelemetry, no attribute is computed.
import { runInSpan } from '../../base/trace.ts'
import type { Delivery } from '../../core/model/delivery.ts'
import { findKnownWords } from './log-lines.ts'
import type { Answer } from '../../core/mapping/answer.ts'
import { findMapping, type Hook } from '../../core/mapping/hook.ts'

/** Handles a delivery in its span. The trace has the id of the delivery. */
export function runInRequestSpan(
  { delivery, hook }: { readonly delivery: Delivery; readonly hook: Hook },
  work: () => Promise<Answer>,
): Promise<Answer> {
  const { id, path, method, headers } = delivery
  const describeStart = () => {
    const { source, event } = findKnownWords(delivery, hook)
    return {
      'http.request.method': method,
      'hookloom.hook': path,
      'hookloom.source': source,
      'hookloom.event': event,
    }
  }
  const describeResult = (answer: Answer) => ({
    attributes: {
      'http.response.status_code': answer.status,
      // the body was read by now, so the conditions of the mappings cannot throw
      'hookloom.mapping': findMapping(hook, delivery).mapping?.id,
      'hookloom.outcome': describeOutcome(answer),
    },
    isFailed: false,
  })
  const options = {
    traceId: id,
    kind: 'server' as const,
    traceparent: headers['traceparent'],
    describeStart,
    describeResult,
  }
  return runInSpan('hook', options, work)
}

function describeOutcome({ status, body = '' }: Answer): string {
  if (status === 204) return 'skipped'
  return /^\{"ok":true,"deliveryId":"[^"]*","status":"(parked|pending)"/.exec(body)?.[1] ?? 'accepted'
}
