// Spans for OpenTelemetry. Without its SDK in the process, no span is made. All spans of a delivery belong to one trace, even after a restart:
// the id of the delivery is the id of the trace.
import {
  type Attributes,
  type Context,
  context,
  type Link,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  SpanKind,
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
  /** `server`: a request that the gateway answers. `client`: a call that it makes, inside the active span. Default: neither. */
  readonly kind?: 'server' | 'client'
  /** The attributes that follow from the result. */
  readonly describeResult: (result: T) => { readonly attributes: Attributes; readonly isFailed: boolean }
}

/** Runs `work` in a span, which is the parent of the spans that `work` starts. An exception marks the span as an error, without a message. */
export function runInSpan<T>(spanName: string, options: SpanOptions<T>, work: () => Promise<T>): Promise<T> {
  return isTraced() ? runTraced(spanName, options, work) : work()
}

/** Records a span of work that has already ended. */
export function recordSpan(
  spanName: string,
  { isFailed, ...options }: Omit<SpanOptions<never>, 'describeResult'> & { readonly isFailed: boolean },
): void {
  if (!isTraced()) return
  const { span } = startSpan(spanName, options)
  if (isFailed) span.setStatus({ code: SpanStatusCode.ERROR })
  span.end()
}

function startSpan(
  spanName: string,
  { traceId, describeStart, traceparent, kind: side }: Omit<SpanOptions<never>, 'describeResult'>,
) {
  const root = toParentContext(traceId)
  // an SDK without a context manager knows no active span: then the root is the parent
  const isInside = side === 'client' && hasSameTrace(context.active(), root)
  const parent = isInside ? context.active() : root
  const kind = side === undefined ? SpanKind.INTERNAL : side === 'server' ? SpanKind.SERVER : SpanKind.CLIENT
  const options = { kind, attributes: describeStart(), links: readLinks(traceparent) }
  // each span asks for the tracer: one that is kept never learns of an SDK that registers later, through its own copy of the API
  return { parent, span: trace.getTracer(name).startSpan(spanName, options, parent) }
}

function hasSameTrace(one: Context, other: Context): boolean {
  return trace.getSpanContext(one)?.traceId === trace.getSpanContext(other)?.traceId
}

async function runTraced<T>(
  spanName: string,
  { describeResult, ...options }: SpanOptions<T>,
  work: () => Promise<T>,
): Promise<T> {
  const { parent, span } = startSpan(spanName, options)
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

/**
 * The 32 hex digits of a UUID are the id of the trace. Its last 16 digits are the id of a root span, which is never recorded. It is the parent of
 * each span that begins outside of an active span.
 */
function toParentContext(uuid: string) {
  const traceId = uuid.replaceAll('-', '')
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId: traceId.slice(16),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  })
}

function readLinks(traceparent: string | undefined): Link[] {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return []
  return [{ context: { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true } }]
}
