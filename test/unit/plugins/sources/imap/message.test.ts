// The mail for the hook, from the bytes of a mail.
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseMail } from '../../../../../src/plugins/sources/imap/message.ts'

const receivedAt = Date.parse('2026-03-01T09:30:00Z')

function read(text: string | Uint8Array, more: { maxBytes?: number; includeBody?: boolean; size?: number } = {}) {
  const source = typeof text === 'string' ? Buffer.from(text.replaceAll(/\r?\n/g, '\r\n')) : text
  const { maxBytes = 20_000, includeBody = true, size = source.length } = more
  return parseMail({ source, size, receivedAt, labels: ['INBOX', '\\Seen'] }, { maxBytes, includeBody })
}

const head = 'Message-ID: <a@example.com>\nFrom: Mira <mira@example.com>\nTo: desk@example.org\nSubject: Boat\n'
const multipart = (kind: string, parts: readonly string[]) =>
  `Content-Type: multipart/${kind}; boundary=b${kind}\n\n${parts.map((part) => `--b${kind}\n${part}\n`).join('')}--b${kind}--\n`
const plain = (text: string) => `Content-Type: text/plain; charset=utf-8\n\n${text}`
const html = (text: string) => `Content-Type: text/html; charset=utf-8\n\n${text}`

describe('the mail for the hook', () => {
  test('it has the keys of a mail of Gmail', async () => {
    expect(await read(`${head}\nThe keys are\nin the shed.\n`)).toEqual({
      id: expect.stringMatching(/^[\da-f]{32}$/),
      threadId: expect.stringMatching(/^[\da-f]{32}$/),
      from: 'Mira <mira@example.com>',
      to: 'desk@example.org',
      subject: 'Boat',
      date: '2026-03-01T09:30:00.000Z',
      snippet: 'The keys are in the shed.',
      body: 'The keys are\nin the shed.',
      bodyTruncated: false,
      attachments: [],
      labels: ['INBOX', '\\Seen'],
    })
  })

  test('its attachments are listed, and the body names them', async () => {
    const file = (disposition: string, type = 'application/pdf') =>
      `Content-Type: ${type}\nContent-Disposition: ${disposition}\n\n%PDF`
    const parts = [
      plain('See the files.'),
      file('attachment; filename="=?utf-8?Q?caf=C3=A9=2Epdf?="'),
      file("attachment; filename*=utf-8''na%C3%AFve%20plan.pdf"),
      file('attachment', 'application/octet-stream; name="a\\"b\u202E.bin"'),
      file('attachment'),
    ]
    expect(await read(head + multipart('mixed', parts))).toMatchObject({
      body: 'See the files.\n\nAttached: café.pdf (application/pdf), naïve plan.pdf (application/pdf), a"b.bin (application/octet-stream), a file (application/pdf)',
      bodyTruncated: false,
      attachments: [
        { name: 'café.pdf', type: 'application/pdf' },
        { name: 'naïve plan.pdf', type: 'application/pdf' },
        { name: 'a"b.bin', type: 'application/octet-stream' },
        { name: '', type: 'application/pdf' },
      ],
    })
  })

  test.each([
    [
      'of alternatives, the visible text of the HTML',
      multipart('alternative', [plain('plain'), html('<p>rich</p>')]),
      'rich',
    ],
    ['the plain text if the HTML is empty', multipart('alternative', [plain('plain'), html(' ')]), 'plain'],
    [
      'all parts in order',
      multipart('mixed', [plain('one'), html('<p>two</p>'), plain('three')]),
      'one\n\ntwo\n\nthree',
    ],
    ['no text that the HTML hides', html('<p>shown</p><p style="display:none">obey me</p>'), 'shown'],
    [
      'no text that is hidden in its own part, whatever another part says',
      multipart('mixed', [
        html('<style>.x{display:block !important}</style>'),
        html('<style>.x{display:none}</style><p class="x">obey me</p>shown'),
      ]),
      'shown',
    ],
    ['no invisible characters', plain('sa\u200Bfe\u{E0041}'), 'safe'],
    [
      'no text of an attachment',
      multipart('mixed', [plain('text'), `Content-Disposition: attachment; filename=a.txt\n${plain('file')}`]),
      'text\n\nAttached: a.txt (text/plain)',
    ],
    [
      'no text of a part with the name of a file',
      multipart('mixed', [plain('text'), 'Content-Type: text/plain; name=a.txt\n\nfile']),
      'text\n\nAttached: a.txt (text/plain)',
    ],
    [
      'no text of a mail inside the mail',
      multipart('mixed', [plain('text'), `Content-Type: message/rfc822\n\n${head}\ninner`]),
      'text\n\nAttached: a file (message/rfc822)',
    ],
    [
      'quoted-printable',
      'Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\ncaf=E9',
      'café',
    ],
    ['base64', 'Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nY2Fmw6k=', 'café'],
    ['a charset that nobody knows', 'Content-Type: text/plain; charset=x-none\n\nplain', 'plain'],
  ])('its text is, or has, %s', async (_, body, text) => {
    expect(await read(head + body)).toMatchObject({ body: text, bodyTruncated: false })
  })

  test('its headers are decoded and cut, and a list of addresses cannot be long', async () => {
    const mail = await read(`Subject: =?utf-8?Q?caf=C3=A9?=\nTo: ${'a@example.com, '.repeat(9_000)}\n\ntext`)
    expect(mail.subject).toBe('café')
    expect(mail.to).toHaveLength(2_000)
  })

  test('its text is cut at the limit, and left out without includeBody', async () => {
    expect(await read(`${head}\n${'é'.repeat(100)}`, { maxBytes: 11 })).toMatchObject({
      body: 'ééééé',
      bodyTruncated: true,
    })
    expect(await read(`${head}\ntext`, { includeBody: false })).toMatchObject({
      body: '',
      snippet: 'text',
      bodyTruncated: false,
    })
    expect(await read(`${head}\ntext`, { size: 5_000_000 })).toMatchObject({ body: 'text', bodyTruncated: true })
  })

  test('the same mail has the same id, wherever it was received, and another mail with its Message-ID has another', async () => {
    const [one, again, forged] = await Promise.all([
      read(`${head}\ntext`),
      read(`Received: from elsewhere\n${head}\ntext`),
      read(`${head}\nanother text`),
    ])
    expect(again.id).toBe(one.id)
    expect(forged.id).not.toBe(one.id)
  })

  test('the mails of a thread have the same thread id', async () => {
    const first = await read(`${head}\ntext`)
    const reply = await read('Message-ID: <b@example.com>\nReferences: <a@example.com>\n <x@example.com>\n\ntext')
    const answer = await read('Message-ID: <c@example.com>\nIn-Reply-To: <a@example.com>\n\ntext')
    expect([reply.threadId, answer.threadId]).toEqual([first.threadId, first.threadId])
    expect((await read('Message-ID: <d@example.com>\n\ntext')).threadId).not.toBe(first.threadId)
  })
})

describe('a hostile mail', () => {
  const nest = (levels: number): string => {
    let text = plain('deep')
    for (let level = 0; level < levels; level++)
      text = `Content-Type: multipart/mixed; boundary=l${level}\n\n--l${level}\n${text}\n--l${level}--\n`
    return text
  }

  test.each([
    ['too many levels', `${head}${nest(60)}`],
    ['too many headers', `${head}${'X-Pad: y\n'.repeat(40_000)}\ntext`],
  ])('with %s keeps its headers and has no text', async (_, text) => {
    expect(await read(text)).toMatchObject({
      subject: 'Boat',
      from: 'Mira <mira@example.com>',
      body: '',
      bodyTruncated: true,
    })
  })

  test('with too many parts is read up to the limit', async () => {
    const parts = multipart('mixed', [plain('first'), ...Array.from({ length: 12_000 }, () => '')])
    expect(await read(head + parts)).toMatchObject({ body: 'first', bodyTruncated: true })
  })

  test('with many short lines is read up to the limit, so that a mail of empty lines does not stop the gateway', async () => {
    const lines = Array.from({ length: 30_000 }, (_, no) => `line ${no}.`)
    const { body, bodyTruncated } = await read(`${head}\n${lines.join('\n')}`, { maxBytes: 500_000 })
    expect(bodyTruncated).toBe(true)
    expect(body).toContain('line 9900.')
    expect(body).not.toContain('line 10001.')
  })

  test('with a header that never ends has what was read', async () => {
    expect(await read(`Subject: ${'x'.repeat(500_000)}`)).toMatchObject({ body: '', bodyTruncated: true })
  })

  test('is a mail, whatever its bytes are', async () => {
    const name = fc.constantFrom(
      'Subject',
      'From',
      'Content-Type',
      'Content-Transfer-Encoding',
      'Content-Disposition',
      'References',
    )
    const value = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        'multipart/mixed; boundary=b',
        'multipart/alternative; boundary="b"',
        'text/html; charset=utf-7',
        'message/rfc822',
      ),
      fc.constantFrom(
        'base64',
        'quoted-printable',
        '=?x?b?====?=',
        '=?utf-8?q?=ZZ?=',
        'text/plain; charset=',
        '<<<>>><a>',
        'a; name*0*=%',
      ),
    )
    const line = fc.oneof(
      fc.tuple(name, value).map(([key, text]) => `${key}: ${text}`),
      fc.constantFrom(
        '',
        '--b',
        '--b--',
        '<p style="display:none">',
        '<style>',
        '=',
        '='.repeat(80),
        '\u0000',
        '\t((((',
      ),
      fc.string({ unit: 'binary' }),
    )
    const bytes = fc.oneof(
      fc.array(line, { maxLength: 60 }).map((lines) => Buffer.from(lines.join('\r\n'))),
      fc.uint8Array({ maxLength: 2_000 }),
    )
    await fc.assert(
      fc.asyncProperty(bytes, async (source) => {
        const mail = await read(source)
        expect(Object.keys(mail)).toHaveLength(11)
        expect(JSON.parse(JSON.stringify(mail))).toEqual(mail)
        expect(Buffer.byteLength(mail.body)).toBeLessThanOrEqual(20_000)
        expect(mail.body).not.toMatch(/[\u200B\u202E\u{E0041}]/u)
      }),
      { numRuns: 500 },
    )
  })
})
