// A receiver of webhooks (https://www.standardwebhooks.com): it verifies with the reference library and drops repetitions.
import { Webhook } from 'standardwebhooks'
import { z } from 'zod'
import { type Loopback, startLoopback } from './loopback.ts'

const Reply = z.strictObject({ runId: z.string(), agentId: z.string(), name: z.string(), text: z.string() })

export type FakeReceiver = Loopback & { readonly posted: readonly z.infer<typeof Reply>[] }

/** `raw`: the secret is plain text, not base64 after `whsec_`. */
export async function startFakeReceiver({
  secret,
  raw = false,
}: {
  secret: string
  raw?: boolean
}): Promise<FakeReceiver> {
  const verifier = new Webhook(secret, raw ? { format: 'raw' } : {})
  const seen = new Set<string>()
  const posted: z.infer<typeof Reply>[] = []
  const loopback = await startLoopback(({ method, headers, text }) => {
    if (method !== 'POST') return { status: 405 }
    const proof: Record<string, string> = {}
    for (const [name, value] of Object.entries(headers)) proof[name] = String(value)
    let verified: unknown
    try {
      verified = verifier.verify(text, proof)
    } catch {
      return { status: 401, body: 'signature does not match' }
    }
    const reply = Reply.safeParse(verified)
    if (!reply.success) return { status: 400, body: reply.error.message }
    const id = proof['webhook-id'] ?? ''
    if (!seen.has(id)) posted.push(reply.data)
    seen.add(id)
    return { status: 204, body: '' }
  })
  return { ...loopback, posted }
}
