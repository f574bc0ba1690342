// Spans for OpenTelemetry. Without its SDK in the process, every call does nothing. All spans of a delivery are one trace, also
// after a restart: the id of the delivery is the id of the trace.
import {
  type Attributes,
  context,
  INVALID_SPAN_CONTEXT,
  type Link,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api'

const name = 'hookloom'
const noSpan = trace.wrapSpanContext(INVALID_SPAN_CONTEXT)

/** Whether an SDK is registered. It may be later than the gateway. */
function isTraced(): boolean {
  const provider = trace.getTracerProvider()
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(name) !== undefined
}

export type SpanOptions = {
  /** A UUID: of the delivery, or of a job that has none. */
  readonly traceId: string
  /** Undefined values are left out. */
  readonly attributes: Attributes
  /** The header `traceparent` of the request (W3C Trace Context): a link to the trace of the sender. */
  readonly traceparent?: string | undefined
}

/** Runs `work` in a span, which is the parent of the spans that `work` starts. An exception makes it an error, without its message. */
export async function inSpan<T>(
  spanName: string,
  { traceId, attributes, traceparent }: SpanOptions,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  if (!isTraced()) return work(noSpan)
  const parent = toParent(traceId)
  // asked each time: an SDK that is registered later belongs to another copy of the API than this bundle's
  const span = trace.getTracer(name).startSpan(spanName, { attributes, links: toLinks(traceparent) }, parent)
  try {
    return await context.with(trace.setSpan(parent, span), work, undefined, span)
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR })
    throw error
  } finally {
    span.end()
  }
}

export function markFailed(span: Span): void {
  span.setStatus({ code: SpanStatusCode.ERROR })
}

/** 32 hex digits of a UUID are a trace id, and its last 16 a span id: the root, which all spans of the trace have as their parent. */
function toParent(uuid: string) {
  const traceId = uuid.replaceAll('-', '')
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId: traceId.slice(16),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  })
}

function toLinks(traceparent: string | undefined): Link[] {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return []
  return [{ context: { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true } }]
}
