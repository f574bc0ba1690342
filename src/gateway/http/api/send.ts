// Sends a typed request of the bench to the hook port.
import { randomUUID } from 'node:crypto'
import { signAsSender } from '../../deliveries/own-signature.ts'
import { toCallableUrl } from '../../../base/http.ts'
import { isJsonObject, tryParseJson } from '../../../base/json.ts'
import type { SentFields, TypedRequest } from '../../../model/api/bench.ts'
import { normalizeHookName } from '../../../core/model/mapping-rules.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { HandshakeSecrets } from '../handshake-secrets.ts'
import type { ApiParts } from './parts.ts'
import { listHookTokens } from '../../../model/config/plan-settings.ts'

type SendParts = Pick<ApiParts, 'generation' | 'hooksUrl'> & { readonly handed: Pick<HandshakeSecrets, 'find'> }

/** Headers of the connection, of the encoding of the bytes, and of the gateway, which begin with a colon. A copied request may have them. */
const connectionHeader =
  /^(host|connection|keep-alive|content-length|transfer-encoding|content-encoding|accept-encoding|te|expect|upgrade|trailer|:.*)$/i
const sendMs = 60_000

/** Sends a request to the hook port, with the proof of its sender or the hook token, like `hookloom send`. */
export async function send({ generation, handed, hooksUrl }: SendParts, request: TypedRequest): Promise<SentFields> {
  const current = generation()
  const base = hooksUrl()
  if (base === undefined) throw new Problem('conflict', 'The hook port does not listen yet.')
  const path = normalizeHookName(request.hook)
  const given = Object.entries(request.headers).filter(
    ([name, value]) => !connectionHeader.test(name) && value !== '[secret]',
  )
  const headers = Object.fromEntries([
    ['content-type', 'application/json'],
    ...given.map(([name, value]) => [name.toLowerCase(), value]),
  ])
  const signed = signAsSender(current, handed.find, { path, headers, body: request.body })
  const [token] = listHookTokens(current.config.hooks)
  const search = new URLSearchParams(request.query).toString()
  const url = `${toCallableUrl(base)}/${signed.path}${search === '' ? '' : `?${search}`}`
  const { status, body } = await fetch(url, {
    method: 'POST',
    headers: {
      // without a new key, a sample with the id of a sent delivery would be a duplicate
      'idempotency-key': randomUUID(),
      ...(signed.withToken && token !== undefined ? { authorization: `Bearer ${token}` } : {}),
      ...signed.headers,
    },
    body: signed.body,
    redirect: 'error',
    signal: AbortSignal.timeout(sendMs),
  })
    .then(async (answer) => ({ status: answer.status, body: await answer.text() }))
    .catch((cause: unknown) => {
      throw toSendProblem(cause)
    })
  const receipt = tryParseJson(body)
  const id = isJsonObject(receipt) ? receipt['deliveryId'] : undefined
  return { status, body, deliveryId: typeof id === 'string' ? id : null, note: signed.note ?? null }
}

/** Why no answer came: the hook port did not answer in time, it cannot be reached, or fetch refused the request itself. */
function toSendProblem(thrown: unknown): Problem {
  if (thrown instanceof Error && thrown.name === 'TimeoutError') {
    const detail = `The hook port did not answer within ${sendMs / 1_000} s. The request may have been accepted.`
    return new Problem('conflict', detail, { cause: thrown })
  }
  // fetch gives the failure of a connection as the cause, with its code; an invalid request has none
  if (thrown instanceof Error && thrown.cause instanceof Error && 'code' in thrown.cause) {
    const detail = `The connection to the hook port failed (${String(thrown.cause.code)}). The request may have arrived.`
    return new Problem('conflict', detail, { cause: thrown })
  }
  const detail = 'The request could not be sent: a header or the name of the hook is invalid.'
  return new Problem('usage-invalid', detail, { cause: thrown })
}
