// Spans for OpenTelemetry. Without its SDK in the process, every call does nothing. All spans of a delivery belong to one trace, even after
// a restart: the id of the delivery is the id of the trace.
import {
  type Attributes,
  context,
  type Link,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api'

const name = 'hookloom'

/** Whether an SDK is registered. It may be registered after the gateway starts. */
function isTraced(): boolean {
  const provider = trace.getTracerProvider()
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(name) !== undefined
}

type SpanOptions<T> = {
  /** A UUID: the id of the delivery, or of a job without a delivery. */
  readonly traceId: string
  /** Called only if an SDK is registered. Undefined values are left out. */
  readonly describeStart: () => Attributes
  /** The header `traceparent` of the request (W3C Trace Context): a link to the trace of the sender. */
  readonly traceparent?: string | undefined
  /** The attributes that only the result shows. */
  readonly describeResult: (result: T) => { readonly attributes: Attributes; readonly isFailed: boolean }
}

/** Runs `work` in a span, which is the parent of the spans that `work` starts. An exception makes it an error, without its message. */
export function runInSpan<T>(spanName: string, options: SpanOptions<T>, work: () => Promise<T>): Promise<T> {
  return isTraced() ? runTraced(spanName, options, work) : work()
}

async function runTraced<T>(
  spanName: string,
  { traceId, describeStart, traceparent, describeResult }: SpanOptions<T>,
  work: () => Promise<T>,
): Promise<T> {
  const parent = toParentContext(traceId)
  // asked each time: an SDK that registers later uses another copy of the API than the one in this bundle
  const span = trace
    .getTracer(name)
    .startSpan(spanName, { attributes: describeStart(), links: parseLinks(traceparent) }, parent)
  try {
    const result = await context.with(trace.setSpan(parent, span), work)
    const end = describeResult(result)
    span.setAttributes(end.attributes)
    if (end.isFailed) span.setStatus({ code: SpanStatusCode.ERROR })
    return result
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR })
    throw error
  } finally {
    span.end()
  }
}

/** 32 hex digits of a UUID are a trace id, and its last 16 a span id: the root, which all spans of the trace have as their parent. */
function toParentContext(uuid: string) {
  const traceId = uuid.replaceAll('-', '')
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId: traceId.slice(16),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  })
}

function parseLinks(traceparent: string | undefined): Link[] {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return []
  return [{ context: { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true } }]
}
