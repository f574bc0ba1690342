// Posts to the callbacks of subscribers, as Standard Webhooks describes it.
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { RunnerHost } from '../../../define.ts'
import { abortAfter, findErrorCode, hopsHeader, isJsonObject, readLimitedBody, tryParseJson } from '../shared/kit.ts'

/** The answer of an endpoint should come in about 5 s; a slow one gets twice the time. */
const timeoutMs = 10_000
const maxAnswerBytes = 4_096
/** https://modelcontextprotocol.io/seps/3415-events-extension, delivery profile */
export const maxBodyBytes = 262_144

/** Why a post failed. Nothing of the answer is in it, so that no subscriber can read answers of other servers. */
export type CallbackFault =
  | 'connection_refused'
  | 'timeout'
  | 'tls_error'
  | 'http_4xx'
  | 'http_5xx'
  | 'challenge_failed'

type Target = {
  readonly url: string
  /** The newest first: `whsec_` and base64. */
  readonly secrets: readonly string[]
  readonly subscriptionId: string
}

type PostTools = Pick<RunnerHost, 'fetch' | 'clock'> & { readonly signal: AbortSignal }

/** `gone`: the receiver will never take this message. */
export type PostOutcome =
  | { readonly kind: 'taken' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'failed'; readonly fault: CallbackFault }

/** `id`: the same for each attempt. `body`: JSON. */
export async function postSigned(
  target: Target,
  { id, body, hops }: { readonly id: string; readonly body: string; readonly hops: number },
  tools: PostTools,
): Promise<PostOutcome> {
  const answer = await send(target, { id, body, hops }, tools)
  if (typeof answer === 'string') return { kind: 'failed', fault: answer }
  await answer.body?.cancel().catch(() => undefined)
  if (answer.ok) return { kind: 'taken' }
  if (answer.status === 410 || answer.status === 413) return { kind: 'gone' }
  return { kind: 'failed', fault: toFault(answer.status) }
}

/** Asks the receiver whether it wants events: it must return a number that only it was told. Undefined if it does. */
export async function verifyCallback(target: Target, tools: PostTools): Promise<CallbackFault | undefined> {
  const challenge = randomBytes(24).toString('base64url')
  const id = `msg_verification_${randomBytes(12).toString('hex')}`
  const body = JSON.stringify({ type: 'verification', challenge })
  const answer = await send(target, { id, body, hops: 0 }, tools)
  if (typeof answer === 'string') return answer
  if (!answer.ok) {
    await answer.body?.cancel().catch(() => undefined)
    return toFault(answer.status)
  }
  const echoed = tryParseJson((await readLimitedBody(answer.body, maxAnswerBytes).catch(() => undefined)) ?? '')
  return isJsonObject(echoed) && isEqual(echoed['challenge'], challenge) ? undefined : 'challenge_failed'
}

async function send(
  { url, secrets, subscriptionId }: Target,
  { id, body, hops }: { readonly id: string; readonly body: string; readonly hops: number },
  { fetch, clock, signal }: PostTools,
): Promise<Response | CallbackFault> {
  const timestamp = String(Math.floor(clock() / 1_000))
  const signatures = secrets.map((secret) => `v1,${sign(secret, `${id}.${timestamp}.${body}`)}`)
  try {
    return await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': signatures.join(' '),
        'x-mcp-subscription-id': subscriptionId,
        [hopsHeader]: String(hops),
      },
      body,
      // a redirect may lead to an address that was not checked
      redirect: 'manual',
      signal: abortAfter(timeoutMs, signal),
    })
  } catch (thrown) {
    signal.throwIfAborted()
    if (thrown instanceof Error && (thrown.name === 'TimeoutError' || thrown.name === 'AbortError')) return 'timeout'
    return /TLS|SSL|CERT|SIGNED|VERIFY|EPROTO/.test(findErrorCode(thrown) ?? '') ? 'tls_error' : 'connection_refused'
  }
}

/** A redirect is not followed, so it is a fault of the URL. */
const toFault = (status: number): CallbackFault => (status >= 500 ? 'http_5xx' : 'http_4xx')

function sign(secret: string, text: string): string {
  return createHmac('sha256', Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
    .update(text)
    .digest('base64')
}

function isEqual(given: unknown, expected: string): boolean {
  if (typeof given !== 'string') return false
  const bytes = Buffer.from(given)
  const wanted = Buffer.from(expected)
  return bytes.length === wanted.length && timingSafeEqual(bytes, wanted)
}
