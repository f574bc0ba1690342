// Fetches the request of a refusal from the running gateway, which remembers it in development.
import { z } from 'zod'
import { Problem } from '../../core/model/problem.ts'
import type { VerifyRequest } from '../../core/model/verifier.ts'
import { askAdmin } from '../gateway/gateway.ts'
import { describeKept, fetchRefusals } from '../gateway/refusals.ts'
import { findIdAmong } from '../gateway/ids.ts'
import type { Context } from '../terminal/context.ts'

export type RememberedRequest = VerifyRequest & { readonly receivedAt: number; readonly hook: string | undefined }

const Remembered = z.object({
  method: z.string(),
  url: z.string(),
  headers: z.record(z.string(), z.string()),
  body: z.base64(),
})

/** `given`: a request id, its beginning, or "last". Throws `not-found` if the gateway has no such refusal, or not its request. */
export async function fetchRefused(context: Context, given: string): Promise<RememberedRequest> {
  const ids = (await fetchRefusals(context)).map(({ requestId }) => requestId)
  const id = findIdAmong(ids, given)
  const { refusal, request } = await askAdmin(context, 'GET /api/refusals/{id}', { params: { id } })
  const { receivedAt, hook, isKept } = refusal
  if (request === null) {
    throw new Problem(
      'not-found',
      isKept
        ? `The gateway shows nobody this request: it is kept ${describeKept(hook)}.`
        : 'The gateway does not have this request. Under "hookloom dev", it has the last refused ones whose bodies it read; it reads none of a request that shows no credential.',
    )
  }
  const { method, url, headers, body } = Remembered.parse(request)
  return { method, url, headers, rawBody: Buffer.from(body, 'base64'), receivedAt, hook }
}
