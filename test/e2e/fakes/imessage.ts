// A BlueBubbles server: texts into a known chat, new chats, and a ping.
// https://documenter.getpostman.com/view/765844/UV5RnfwM, github.com/BlueBubblesApp/bluebubbles-server
import { z } from 'zod'
import { type Loopback, type Reply, startLoopback } from './loopback.ts'

const Text = z.strictObject({
  chatGuid: z.string().min(1),
  tempGuid: z.string().min(1),
  message: z.string().min(1),
  method: z.enum(['apple-script', 'private-api']).optional(),
})
const NewChat = z.strictObject({
  // AppleScript cannot open groups since macOS Big Sur
  addresses: z.tuple([z.string().min(1)]),
  tempGuid: z.string().min(1),
  message: z.string().min(1),
})
type Posted = z.infer<typeof Text> | z.infer<typeof NewChat>

export type FakeBlueBubbles = Loopback & { readonly posted: readonly Posted[] }

/** `chats`: guids of the existing conversations. `sending`: tempGuids of messages that are still being sent. */
export async function startFakeBlueBubbles({
  password,
  chats = [],
  sending = [],
}: {
  password: string
  chats?: readonly string[]
  sending?: readonly string[]
}): Promise<FakeBlueBubbles> {
  const posted: Posted[] = []
  const loopback = await startLoopback(({ method, path, query, body }) => {
    if (query.get('password') !== password) return refuse(401, 'Authentication Error', 'Missing server password!')
    if (method === 'GET' && path === '/api/v1/ping') return answer('Ping received!', 'pong')
    if (method === 'GET' && path.startsWith('/api/v1/chat/')) {
      const guid = decodeURIComponent(path.slice('/api/v1/chat/'.length))
      return chats.includes(guid) ? answer('Success', { guid }) : refuse(404, 'Database Error', 'Chat does not exist!')
    }
    if (method !== 'POST') return { status: 404, body: 'Not Found' }
    if (path === '/api/v1/message/text') {
      const text = Text.safeParse(body)
      if (!text.success) return refuse(400, 'Validation Error', text.error.message)
      if (sending.includes(text.data.tempGuid)) {
        return refuse(
          400,
          'Validation Error',
          `Message is already queued to be sent! (Temp GUID: ${text.data.tempGuid})`,
        )
      }
      posted.push(text.data)
      return answer('Message sent!', { guid: `guid-${posted.length}`, tempGuid: text.data.tempGuid, error: 0 })
    }
    if (path !== '/api/v1/chat/new') return { status: 404, body: 'Not Found' }
    const chat = NewChat.safeParse(body)
    if (!chat.success) return refuse(400, 'Validation Error', chat.error.message)
    posted.push(chat.data)
    const [address] = chat.data.addresses
    const messages = [{ guid: `guid-${posted.length}`, tempGuid: chat.data.tempGuid, error: 0 }]
    return answer('Successfully created chat!', { guid: `iMessage;-;${address}`, messages })
  })
  return { ...loopback, posted }
}

function answer(message: string, data: unknown): Reply {
  return { status: 200, body: { status: 200, message, data } }
}

/** An error in the server's format. `data` is the message, if Messages could not send it. */
export function refuse(status: number, type: string, message: string, data?: object): Reply {
  return { status, body: { status, message, error: { type, message }, data } }
}
