// The client-server API of a Matrix homeserver as it is specified: PUT /rooms/{id}/send/{type}/{txn}, GET /directory/room/{alias}, /account/whoami.
// https://spec.matrix.org/v1.11/client-server-api/
import { z } from 'zod'
import { type Loopback, type Reply, startLoopback } from './loopback.ts'

/** https://spec.matrix.org/v1.11/client-server-api/#mnotice and #user-and-room-mentions */
const Notice = z.strictObject({
  msgtype: z.literal('m.notice'),
  body: z.string().min(1),
  format: z.literal('org.matrix.custom.html'),
  formatted_body: z.string(),
  'm.mentions': z.strictObject({}),
})
type Event = z.infer<typeof Notice> & { readonly room: string; readonly id: string }

export type FakeMatrix = Loopback & { readonly posted: readonly Event[] }

/** `aliases`: the ids of rooms by name. */
export async function startFakeMatrix({
  token,
  rooms,
  aliases = {},
}: {
  readonly token: string
  readonly rooms: readonly string[]
  readonly aliases?: Readonly<Record<string, string>>
}): Promise<FakeMatrix> {
  const posted: Event[] = []
  const transactions = new Map<string, string>()
  const loopback = await startLoopback(({ method, path, headers, body }) => {
    if (headers.authorization !== `Bearer ${token}`) return refuse(401, 'M_UNKNOWN_TOKEN')
    const [, , , , ...rest] = path.split('/').map((part) => decodeURIComponent(part))
    const [kind, ...names] = rest
    if (method === 'GET' && kind === 'account') return { status: 200, body: { user_id: '@hooks:example.org' } }
    if (method === 'GET' && kind === 'directory') {
      const room = aliases[names[1] ?? '']
      return room === undefined ? refuse(404, 'M_NOT_FOUND') : { status: 200, body: { room_id: room, servers: [] } }
    }
    const [room = '', send, type, transaction = ''] = names
    if (method !== 'PUT' || kind !== 'rooms' || send !== 'send' || type !== 'm.room.message')
      return refuse(404, 'M_UNRECOGNIZED')
    if (!rooms.includes(room)) return refuse(403, 'M_FORBIDDEN')
    const known = transactions.get(transaction)
    if (known !== undefined) return { status: 200, body: { event_id: known } }
    const notice = Notice.safeParse(body)
    if (!notice.success) return refuse(400, 'M_BAD_JSON')
    if (Buffer.byteLength(JSON.stringify(body)) > 65_000) return refuse(413, 'M_TOO_LARGE')
    const id = `$event${posted.length + 1}`
    transactions.set(transaction, id)
    posted.push({ ...notice.data, room, id })
    return { status: 200, body: { event_id: id } }
  })
  return { ...loopback, posted }
}

/** An error in the format of the specification. */
function refuse(status: number, errcode: string): Reply {
  return { status, body: { errcode, error: 'What went wrong.' } }
}
