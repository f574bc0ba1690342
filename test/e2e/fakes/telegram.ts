// The Bot API of Telegram as it is documented: POST /bot<token>/<method>. https://core.telegram.org/bots/api#sendmessage, #html-style
import { z } from 'zod'
import { type Loopback, type Reply, startLoopback } from './loopback.ts'

const Message = z.strictObject({
  chat_id: z.union([z.int(), z.string().regex(/^@\w{4,32}$/)]),
  message_thread_id: z.int().positive().optional(),
  text: z.string().min(1),
  parse_mode: z.literal('HTML').optional(),
  link_preview_options: z.strictObject({ is_disabled: z.literal(true) }),
})

type TelegramMessage = z.infer<typeof Message>
export type FakeTelegram = Loopback & { readonly baseUrl: string; readonly posted: readonly TelegramMessage[] }

/** `moved`: the new ids of groups that became supergroups. `noHtml`: accepts no tags, like an older server. */
export async function startFakeTelegram({
  botToken,
  chats,
  moved = {},
  noHtml = false,
}: {
  botToken: string
  chats: readonly (number | string)[]
  moved?: Readonly<Record<string, number>>
  noHtml?: boolean
}): Promise<FakeTelegram> {
  const posted: TelegramMessage[] = []
  const loopback = await startLoopback(({ method, path, headers, body }) => {
    if (!path.startsWith(`/bot${botToken}/`)) return refuse(401, 'Unauthorized')
    if (path.endsWith('/getMe')) {
      return { status: 200, body: { ok: true, result: { id: 1, is_bot: true, username: 'hook_bot' } } }
    }
    if (method !== 'POST' || !path.endsWith('/sendMessage')) return refuse(404, 'Not Found')
    if (headers['content-type']?.startsWith('application/json') !== true) return refuse(400, 'Bad Request: no JSON')
    const message = Message.safeParse(body)
    if (!message.success) return refuse(400, `Bad Request: ${message.error.message}`)
    const { data } = message
    const newId = moved[String(data.chat_id)]
    if (newId !== undefined) {
      return refuse(400, 'Bad Request: group chat was upgraded to a supergroup chat', { migrate_to_chat_id: newId })
    }
    if (!chats.includes(data.chat_id)) return refuse(400, 'Bad Request: chat not found')
    const visible = data.parse_mode === undefined ? data.text : toVisibleText(data.text)
    if (visible === undefined || (noHtml && data.parse_mode !== undefined)) {
      return refuse(400, "Bad Request: can't parse entities: unsupported start tag at byte offset 0")
    }
    if (visible.trim() === '') return refuse(400, 'Bad Request: message text is empty')
    if (visible.length > 4_096) return refuse(400, 'Bad Request: message is too long')
    posted.push(data)
    return { status: 200, body: { ok: true, result: { message_id: posted.length, date: 1, text: visible } } }
  })
  return { ...loopback, baseUrl: loopback.url, posted }
}

/** An error in the Bot API's format. */
export function refuse(status: number, description: string, parameters?: object): Reply {
  return { status, body: { ok: false, error_code: status, description, ...(parameters && { parameters }) } }
}

/** The text without its entities; undefined if the Bot API would refuse it. */
function toVisibleText(html: string): string | undefined {
  const open: string[] = []
  for (const [, slash, name = '', attributes = ''] of html.matchAll(/<(\/?)(\w*)([^<>]*)>/g)) {
    if (slash === '/' && open.pop() !== name) return undefined
    if (slash === '/') continue
    const isKnown =
      (/^(b|i|s|pre|blockquote)$/.test(name) && attributes === '') ||
      (name === 'code' && /^( class="language-[^"<>]+")?$/.test(attributes)) ||
      (name === 'a' && /^ href="[^"<>]+"$/.test(attributes))
    if (!isKnown || (name === 'blockquote' && open.includes(name))) return undefined
    open.push(name)
  }
  const text = html.replace(/<\/?\w+[^<>]*>/g, '')
  if (open.length > 0 || /[<>]|&(?!(amp|lt|gt|quot);)/.test(text)) return undefined
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
}
