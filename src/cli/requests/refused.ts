// Fetches the request of a refusal from the running gateway, which remembers it in development.
import { z } from 'zod'
import { Problem } from '../../model/problem.ts'
import type { VerifyRequest } from '../../model/verifier.ts'
import { askAdmin } from '../gateway/gateway.ts'
import { fetchRefusals } from '../gateway/refusals.ts'
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
  const path = `/api/refusals/${encodeURIComponent(findIdAmong(ids, given))}`
  const answer = z.object({
    refusal: z.object({ receivedAt: z.number(), hook: z.string().optional() }),
    request: Remembered.nullable(),
  })
  const { refusal, request } = await askAdmin(context, { method: 'GET', path, answer })
  if (request === null) {
    throw new Problem(
      'not-found',
      'The gateway does not have this request. It keeps the last refused ones under "hookloom dev", if it read their bodies.',
    )
  }
  const { method, url, headers, body } = request
  const { receivedAt, hook } = refusal
  return { method, url, headers, rawBody: Buffer.from(body, 'base64'), receivedAt, hook }
}
