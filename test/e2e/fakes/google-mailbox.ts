// A fake Gmail mailbox: messages, a history that can expire, labels, a search over subjects.
import type { Reply } from './google.ts'
import type { Received } from './loopback.ts'

type FakeMail = {
  readonly id: string
  readonly subject?: string
  readonly from?: string
  readonly labels?: readonly string[]
  readonly text?: string
  readonly html?: string
  /** Stores the texts separately, as Gmail does with large texts. A number is the size that Gmail states. */
  readonly storedApart?: true | number
  /** The only part of the payload, in place of the parts that are built from the texts above. */
  readonly payload?: object
  /** The contents of its attachments, by attachment id. */
  readonly stored?: Readonly<Record<string, string>>
}

export type FakeMailbox = {
  historyId: number
  /** Adds mails to the mailbox, each with its own history record. */
  receive(...mails: readonly FakeMail[]): void
  /** Removes a mail from the mailbox, but not from the history. */
  remove(id: string): void
  /** Removes all history records so far. */
  expire(): void
  /** The number of messages on one page of the history. */
  pageSize: number
  /** The maximum number of messages that a search finds. */
  listSize: number
  /** The number of watches so far. */
  watches: number
  answer(seen: Received): Reply | undefined
}

export function createFakeMailbox(options: {
  account: string
  clock: () => number
  addFault: (text: string) => void
}): FakeMailbox {
  const { account, clock, addFault } = options
  const mails = new Map<string, FakeMail & { internalDate: number }>()
  const records: { historyId: number; id: string; labels: readonly string[] }[] = []
  let oldest = 0

  const box: FakeMailbox = {
    historyId: 1000,
    pageSize: 100,
    listSize: 500,
    watches: 0,
    receive(...received) {
      for (const mail of received) {
        box.historyId += 10
        mails.set(mail.id, { ...mail, internalDate: clock() })
        records.push({ historyId: box.historyId, id: mail.id, labels: mail.labels ?? ['INBOX', 'UNREAD'] })
      }
    },
    remove: (id) => void mails.delete(id),
    expire() {
      oldest = box.historyId
    },
    answer({ method, path, query, body }) {
      const at = `${method} ${path.replace('/gmail/v1/users/me', '')}`
      if (at === 'GET /profile') return { body: { emailAddress: account, historyId: String(box.historyId) } }
      if (at === 'POST /watch') return watch(body)
      if (at === 'POST /stop') return { status: 204 }
      if (at === 'GET /history') return listHistory(query)
      if (at === 'GET /messages') return list(query)
      const [, id, part] = /^GET \/messages\/([\w-]+)(?:\/attachments\/([\w-]+))?$/.exec(at) ?? []
      if (id !== undefined && part !== undefined) return getAttachment(id, part)
      return id === undefined ? undefined : get(id, query)
    },
  }
  return box

  function watch(body: unknown): Reply {
    const given = body as { topicName?: string; labelIds?: string[]; labelFilterBehavior?: string }
    if (!/^projects\/[\w-]+\/topics\/[\w-]+$/.test(given.topicName ?? '')) addFault('watch has no topicName')
    if (!Array.isArray(given.labelIds) || given.labelFilterBehavior !== 'INCLUDE') addFault('watch has no labels')
    box.watches += 1
    return { body: { historyId: String(box.historyId), expiration: String(clock() + 7 * 86_400_000) } }
  }

  function listHistory(query: URLSearchParams): Reply {
    const since = Number(query.get('startHistoryId'))
    if (!Number.isInteger(since) || since <= 0) addFault('history.list has no startHistoryId')
    if (query.get('historyTypes') !== 'messageAdded') addFault('history.list asks for more than added messages')
    if (since < oldest) return { status: 404, body: { error: { code: 404, errors: [{ reason: 'notFound' }] } } }
    const found = records.filter(({ historyId }) => historyId > since)
    const from = Number(query.get('pageToken') ?? 0)
    const page = found.slice(from, from + box.pageSize)
    const history = page.map(({ historyId, id, labels }) => ({
      id: String(historyId),
      messages: [{ id, threadId: `t-${id}` }],
      messagesAdded: [{ message: { id, threadId: `t-${id}`, labelIds: labels } }],
    }))
    const next = from + box.pageSize < found.length ? { nextPageToken: String(from + box.pageSize) } : {}
    return { body: { ...(history.length === 0 ? {} : { history }), ...next, historyId: String(box.historyId) } }
  }

  /** `after:` and `before:` in seconds, and words that the subject must have. */
  function list(query: URLSearchParams): Reply {
    const q = query.get('q') ?? ''
    const after = Number(/after:(\d+)/.exec(q)?.[1] ?? 0) * 1000
    const before = Number(/before:(\d+)/.exec(q)?.[1] ?? Infinity) * 1000
    const [, word] = /\(subject:(\w+)\)/.exec(q) ?? []
    const label = query.get('labelIds')
    const found = [...mails.values()]
      .filter(({ internalDate }) => internalDate >= after && internalDate < before)
      .filter(({ labels = ['INBOX'] }) => label === null || labels.includes(label))
      .filter(({ subject = '' }) => word === undefined || subject.includes(word))
      .toReversed()
      .slice(0, Math.min(box.listSize, Number(query.get('maxResults'))))
    return {
      body: { messages: found.map(({ id }) => ({ id, threadId: `t-${id}` })), resultSizeEstimate: found.length },
    }
  }

  function getAttachment(id: string, part: string): Reply {
    const mail = mails.get(id)
    const text = mail?.stored?.[part] ?? (part === 'stored-html' ? mail?.html : mail?.text)
    if (text === undefined) return { status: 404, body: { error: { code: 404, status: 'NOT_FOUND' } } }
    return { body: { size: text.length, data: Buffer.from(text).toString('base64url') } }
  }

  function get(id: string, query: URLSearchParams): Reply {
    const mail = mails.get(id)
    if (mail === undefined) return { status: 404, body: { error: { code: 404, status: 'NOT_FOUND' } } }
    const format = query.get('format')
    if (format !== 'full' && format !== 'metadata') addFault(`messages.get has the format ${format}`)
    const { labels = ['INBOX', 'UNREAD'], internalDate } = mail
    const payload = format === 'full' ? toPayload(mail) : { headers: toHeaders(mail) }
    const snippet = (mail.text ?? '').slice(0, 100).replaceAll('&', '&amp;').replaceAll("'", '&#39;')
    return { body: { id, threadId: `t-${id}`, labelIds: labels, snippet, internalDate: String(internalDate), payload } }
  }
}

function toHeaders({ from = 'Mira <mira@example.com>', subject = 'Hello' }: FakeMail) {
  return [
    { name: 'From', value: from },
    { name: 'To', value: 'desk@example.org' },
    { name: 'Subject', value: subject },
  ]
}

function toPayload(mail: FakeMail): object {
  const toPart = (mimeType: string, text: string) => ({
    mimeType,
    filename: '',
    headers: [{ name: 'Content-Type', value: `${mimeType}; charset="UTF-8"` }],
    body:
      mail.storedApart === undefined
        ? { size: text.length, data: Buffer.from(text).toString('base64url') }
        : {
            size: mail.storedApart === true ? text.length : mail.storedApart,
            attachmentId: `stored-${mimeType.slice(5)}`,
          },
  })
  const parts = [
    ...(mail.text === undefined ? [] : [toPart('text/plain', mail.text)]),
    ...(mail.html === undefined ? [] : [toPart('text/html', mail.html)]),
  ]
  const whole = { mimeType: 'multipart/alternative', filename: '', headers: toHeaders(mail), body: { size: 0 }, parts }
  return mail.payload === undefined ? whole : { ...whole, parts: [mail.payload] }
}
