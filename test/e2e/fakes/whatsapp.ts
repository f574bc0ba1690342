// The Cloud API of WhatsApp as it is documented: POST /<version>/<number id>/messages, and the number itself for a probe.
// https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages, /support/error-codes
import { z } from 'zod'
import { type Loopback, type Reply, startLoopback } from './loopback.ts'

const shared = {
  messaging_product: z.literal('whatsapp'),
  recipient_type: z.literal('individual'),
  to: z.string().regex(/^\d{5,15}$/),
}
const Message = z.discriminatedUnion('type', [
  z.strictObject({
    ...shared,
    type: z.literal('text'),
    text: z.strictObject({ body: z.string().min(1).max(4096), preview_url: z.boolean() }),
  }),
  z.strictObject({
    ...shared,
    type: z.literal('template'),
    template: z.strictObject({
      name: z.string(),
      language: z.strictObject({ code: z.string() }),
      components: z.tuple([
        z.strictObject({
          type: z.literal('body'),
          parameters: z.tuple([
            z.strictObject({
              type: z.literal('text'),
              // error 132018: no line breaks, no tabs, no more than four spaces in a row
              text: z
                .string()
                .min(1)
                .max(1024)
                .regex(/^[^\n\r\t]+$/)
                .regex(/^(?!.* {5})/),
            }),
          ]),
        }),
      ]),
    }),
  }),
])

export type FakeWhatsApp = Loopback & { readonly baseUrl: string; readonly posted: readonly z.infer<typeof Message>[] }

/** `closed`: numbers that have not written for 24 hours, which accept templates only. */
export async function startFakeWhatsApp({
  accessToken,
  phoneNumberId,
  templates = [],
  closed = [],
}: {
  accessToken: string
  phoneNumberId: string
  templates?: readonly string[]
  closed?: readonly string[]
}): Promise<FakeWhatsApp> {
  const posted: z.infer<typeof Message>[] = []
  const loopback = await startLoopback(({ method, path, headers, body }) => {
    if (headers.authorization !== `Bearer ${accessToken}`) return refuse(401, 190, 'Invalid OAuth access token')
    if (method === 'GET' && path === `/v25.0/${phoneNumberId}`) {
      return { status: 200, body: { id: phoneNumberId, display_phone_number: '+1 555-0100' } }
    }
    if (method !== 'POST' || path !== `/v25.0/${phoneNumberId}/messages`) return refuse(400, 100, 'Unsupported request')
    const message = Message.safeParse(body)
    if (!message.success) return refuse(400, 100, message.error.message)
    const { data } = message
    if (data.type === 'text' && closed.includes(data.to)) return refuse(400, 131047, 'Re-engagement message')
    if (data.type === 'template' && !templates.includes(data.template.name)) {
      return refuse(404, 132001, 'Template name does not exist in the translation')
    }
    posted.push(data)
    return {
      status: 200,
      body: {
        messaging_product: 'whatsapp',
        contacts: [{ input: data.to, wa_id: data.to }],
        messages: [{ id: `wamid.${posted.length}` }],
      },
    }
  })
  return { ...loopback, baseUrl: `${loopback.url}/v25.0`, posted }
}

/** An error in the Graph API's format. */
function refuse(status: number, code: number, title: string): Reply {
  const error = { message: `(#${code}) ${title}`, type: 'OAuthException', code, error_data: { details: title } }
  return { status, body: { error: { ...error, fbtrace_id: 'Az8or2yhqkZfEZ-_4Qn_Bam' } } }
}
