import { describe, expect, test } from 'vitest'
import type { GmailMessage, MailPart } from '../../../../../src/plugins/sources/gmail/api.ts'
import { readMails, toMail } from '../../../../../src/plugins/sources/gmail/message.ts'
import { cutBytes } from '../../../../../src/plugins/sources/shared/mail.ts'

const options = { maxBytes: 20_000, includeBody: true }

function toPart(mimeType: string, data: string | Uint8Array, more: MailPart = {}): MailPart {
  return { mimeType, filename: '', body: { data: Buffer.from(data).toString('base64url') }, ...more }
}

function toMessage(payload: MailPart, more: Partial<GmailMessage> = {}): GmailMessage {
  return {
    id: 'm1',
    threadId: 't1',
    labelIds: ['INBOX'],
    snippet: '',
    internalDate: 1_700_000_000_000,
    payload,
    ...more,
  }
}

const buildTypedPart = (value: string): MailPart => ({ headers: [{ name: 'Content-Type', value }] })
const toBody = (payload: MailPart, more = options) => toMail(toMessage(payload), more).body

describe('a mail', () => {
  test('a mail has decoded headers, its date in ISO 8601 and its snippet without entities', () => {
    const headers = [
      { name: 'FROM', value: '=?utf-8?Q?Jos=C3=A9?= <jose@example.com>' },
      { name: 'Subject', value: '=?ISO-8859-1?B?Y2Fm6Q==?= =?utf-8?q?_au_lait?=' },
    ]
    const mail = toMail(toMessage({ headers }, { snippet: 'it&#39;s &lt;b&gt; &amp; more' }), options)
    expect(mail).toEqual({
      id: 'm1',
      threadId: 't1',
      from: 'José <jose@example.com>',
      to: '',
      subject: 'café au lait',
      date: '2023-11-14T22:13:20.000Z',
      snippet: "it's <b> & more",
      body: '',
      bodyTruncated: false,
      attachments: [],
      labels: ['INBOX'],
    })
  })

  test('the attachments are listed with their sizes, and the body names them within its limit', () => {
    const toFile = (filename: string, mimeType: string, size: number) => ({ filename, mimeType, body: { size } })
    const parts = [
      toPart('text/plain', 'See the files.'),
      { mimeType: 'multipart/related', parts: [toPart('text/html', '<p>Hi</p>'), toFile('logo.png', 'image/png', 9)] },
      toFile('invoice.pdf', 'application/pdf', 34_200),
      toFile('=?utf-8?Q?caf=C3=A9?=\n\nObey\u202E', 'image/PNG', 1),
      toFile('', 'message/rfc822', 5),
    ]
    const payload = { mimeType: 'multipart/mixed', parts }
    const line =
      'Attached: invoice.pdf (application/pdf, 35 kB), café Obey (image/png, 1 kB), a file (message/rfc822, 1 kB)'
    expect(toMail(toMessage(payload), options)).toMatchObject({
      body: `See the files.\n\nHi\n\n${line}`,
      bodyTruncated: false,
      attachments: [
        { name: 'invoice.pdf', type: 'application/pdf', bytes: 34_200 },
        { name: 'café Obey', type: 'image/png', bytes: 1 },
        { name: '', type: 'message/rfc822', bytes: 5 },
      ],
    })
    const small = toMail(toMessage(payload), { ...options, maxBytes: Buffer.byteLength(line) + 8 })
    expect(small).toMatchObject({ body: `See th\n\n${line}`, bodyTruncated: true })
    expect(toMail(toMessage(payload), { ...options, maxBytes: 9 }).body).toBe('Attached:')
    expect(toMail(toMessage(payload), { ...options, includeBody: false })).toMatchObject({
      body: '',
      bodyTruncated: false,
    })
    const many = {
      mimeType: 'multipart/mixed',
      parts: Array.from({ length: 500 }, () => toFile('x'.repeat(5_000), 'a/b', 1)),
    }
    const mail = toMail(toMessage(many), options)
    expect(mail.attachments).toHaveLength(20)
    expect(mail.body).toMatch(/^Attached: x{100}… \(a\/b, 1 kB\), [^]*, and perhaps others$/)
  })

  test('the body of a mail is what a client shows: the HTML alternative, or the text part if there is no HTML', () => {
    const html = toPart('text/html', '<p>from <b>HTML</b></p>')
    const plain = toPart('text/plain', ' obey me ')
    const toAlternativeBody = (...parts: MailPart[]) => toBody({ mimeType: 'multipart/alternative', parts })
    expect(toAlternativeBody(plain, html)).toBe('from HTML')
    expect(toAlternativeBody(html, plain)).toBe('from HTML')
    expect(toAlternativeBody(plain, { mimeType: 'multipart/related', parts: [html] })).toBe('from HTML')
    expect(toAlternativeBody(plain, { mimeType: 'multipart/mixed', parts: [html, toPart('text/plain', 'end')] })).toBe(
      'from HTML\n\nend',
    )
    expect(toAlternativeBody(plain, toPart('text/html', ' '))).toBe('obey me')
    expect(toAlternativeBody(plain, toPart('text/calendar', 'BEGIN:VCALENDAR'))).toBe('obey me')
    expect(toAlternativeBody(plain, toPart('text/html', '<img src="a.png"><p style="display:none">X</p>'))).toBe('')
    expect(toBody(toPart('text/plain', 'the mail itself'))).toBe('the mail itself')
  })

  test('the body of a mail has all text parts that a client shows in sequence', () => {
    const parts = [toPart('text/plain', 'one'), toPart('text/html', '<p>two</p>'), toPart('text/plain', 'three')]
    expect(toBody({ mimeType: 'multipart/mixed', parts })).toBe('one\n\ntwo\n\nthree')
  })

  test('the body of a mail is never the text of an attachment or of an attached mail', () => {
    const attached = toPart('text/plain', 'text of the file', { filename: 'notes.txt' })
    const forwarded: MailPart = { mimeType: 'message/rfc822', filename: '', parts: [toPart('text/plain', 'forwarded')] }
    const line = 'Attached: notes.txt (text/plain), a file (message/rfc822)'
    expect(toBody({ mimeType: 'multipart/mixed', parts: [attached, forwarded, toPart('text/plain', 'own')] })).toBe(
      `own\n\n${line}`,
    )
    expect(toBody({ mimeType: 'multipart/mixed', parts: [attached, forwarded] })).toBe(line)
  })

  test.each([
    ['text/plain; charset="iso-8859-1"', Buffer.from('caf\xe9', 'latin1'), 'café'],
    ['text/plain; charset=windows-1252', Buffer.from([0x93, 0x68, 0x69, 0x94]), '“hi”'],
    ['text/plain; charset=shift_jis', Buffer.from([0x93, 0xfa, 0x96, 0x7b]), '日本'],
    ['text/plain; charset=ISO-2022-JP', Buffer.from('\x1b$BF|K\\\x1b(B', 'latin1'), '日本'],
    ['text/plain; charset=iso-8859-1', Buffer.from('café recoded'), 'café recoded'],
    ['text/plain; charset=x-unheard-of', Buffer.from('caf\xe9', 'latin1'), 'café'],
    ['text/plain', Buffer.from('naïve'), 'naïve'],
  ])('a mail is read in its charset: %s', (type, bytes, text) => {
    expect(toBody(toPart('text/plain', bytes, buildTypedPart(type)))).toBe(text)
  })

  test('a body is cut at maxBytes, never inside a character, and is marked as truncated', () => {
    const mail = toMail(toMessage(toPart('text/plain', 'añ😀z')), { ...options, maxBytes: 6 })
    expect(mail).toMatchObject({ body: 'añ', bodyTruncated: true })
    expect(toMail(toMessage(toPart('text/plain', 'añ😀z')), { ...options, maxBytes: 8 })).toMatchObject({
      body: 'añ😀z',
      bodyTruncated: false,
    })
    expect([0, 1, 2, 3, 4].map((most) => cutBytes('😀', most))).toEqual(['', '', '', '', '😀'])
  })

  test('a header of a mail has at most two thousand bytes', () => {
    const headers = ['From', 'To', 'Subject'].map((name) => ({ name, value: 'é'.repeat(200_000) }))
    const { from, to, subject } = toMail(toMessage({ headers }), options)
    expect([from, to, subject]).toEqual(Array.from({ length: 3 }, () => 'é'.repeat(1_000)))
  })

  test('a mail has no body if includeBody is false', () => {
    expect(toMail(toMessage(toPart('text/plain', 'text')), { ...options, includeBody: false }).body).toBe('')
  })

  test('a mail whose text Gmail stores separately is marked as truncated', () => {
    const mail = toMail(
      toMessage({ mimeType: 'text/plain', filename: '', body: { attachmentId: 'x', size: 9 } }),
      options,
    )
    expect(mail).toMatchObject({ body: '', bodyTruncated: true })
  })

  test('a plain text part loses its invisible characters too', () => {
    expect(toBody(toPart('text/plain', 'pay\u00ADpal \u{E0049}\u{E0047}now'))).toBe('paypal now')
  })

  test.each([
    ['a Roman numeral that the HTML converter cannot write', '<ol type="I" start="10000"><li>ten thousand</li></ol>'],
    [
      'a list that reaches a Roman numeral that the HTML converter cannot write',
      `<ol type="i" start="3999">${'<li>item</li>'.repeat(3)}</ol>`,
    ],
    ['a list that begins below 1', '<ol type="a" start="-3"><li>item</li></ol>'],
    ['a list whose start is not a number', '<ol start="1e999"><li>item</li></ol>'],
  ])('a mail with %s has its text', (_, html) => {
    expect(toBody(toPart('text/html', html))).toMatch(/item|ten thousand/)
  })

  test('a mail whose body cannot be read has its headers and its snippet, and is marked as truncated', () => {
    const broken: MailPart = {
      mimeType: 'text/plain',
      get body(): never {
        throw new RangeError('no such charset')
      },
    }
    expect(toMail(toMessage(broken, { snippet: 'Lunch &amp; more' }), options)).toMatchObject({
      id: 'm1',
      snippet: 'Lunch & more',
      body: '',
      bodyTruncated: true,
    })
  })

  test('a mail with an impossible date is dated 1970 and is not lost', () => {
    expect(toMail(toMessage({}, { internalDate: 1e300 }), options).date).toBe('1970-01-01T00:00:00.000Z')
  })

  test('other work runs between two mails', async () => {
    const order: string[] = []
    const toNoted = (id: string): GmailMessage => ({
      ...toMessage({}),
      get id() {
        order.push(id)
        return id
      },
    })
    const noteWork = () => {
      order.push('other work')
      if (!order.includes('b')) setImmediate(noteWork)
    }
    setImmediate(noteWork)
    await readMails([toNoted('a'), toNoted('b')], options)
    expect(order.slice(order.indexOf('a'), order.indexOf('b') + 1)).toContain('other work')
  })
})
