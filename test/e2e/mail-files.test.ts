// Attachments of mails, as files in the workspace of the run: on a real IMAP server, and on a fake Gmail.
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { fileAgent, readJobs, readShown as readFilesShown } from './file-agent.ts'
import { buildMail, type Dovecot, dovecotMissing, startCable, startDovecot, user } from './fakes/dovecot.ts'
import { startGoogle } from './fakes/google.ts'
import { makeConfigDir, startGateway } from './gateway.ts'
import { makeMailDir } from './gmail-stage.ts'
import { readSubjects, toImapConfig } from './imap-stage.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const reading = {
  runners: { reader: { kind: 'command', command: process.execPath, args: ['-e', fileAgent] } },
  agents: { defaults: { runner: 'reader', heartbeat: { every: 0 } } },
}

async function readShown(gateway: Pick<Inside, 'dir'>) {
  const { prompt, files } = await readFilesShown(gateway)
  return { prompt, files: Object.fromEntries([...files].map(([path, bytes]) => [basename(path), bytes])) }
}

/** A mail with a text and the given parts. */
function buildMixed(id: string, parts: readonly string[]): string {
  const part = (text: string) => `--limit\r\n${text}\r\n`
  const body = [...['Content-Type: text/plain\r\n\r\nSee the files.', ...parts].map(part), '--limit--'].join('')
  return buildMail(id, { headers: 'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=limit', body })
}

function toPart(name: string, bytes: Buffer, more = ''): string {
  const lines = bytes.toString('base64').replaceAll(/.{76}/g, '$&\r\n')
  const head = [
    'Content-Type: application/octet-stream',
    'Content-Transfer-Encoding: base64',
    `Content-Disposition: attachment; ${name}`,
  ]
  return [...head, ...(more === '' ? [] : [more]), '', lines].join('\r\n')
}

describe.skipIf(dovecotMissing !== undefined)(
  `attachments by IMAP${dovecotMissing ? ` (${dovecotMissing})` : ''}`,
  () => {
    let server: Dovecot
    beforeAll(async () => {
      server = await startDovecot()
    })
    afterEach(() => server.clear())

    async function start(more: object = { attachments: true }) {
      const lines: string[] = []
      const note = (_: object, line: string) => void lines.push(line)
      const log = { debug: note, info: note, warn: note, error: note }
      const dir = makeConfigDir({ config: { ...toImapConfig(server, more), ...reading } })
      const gateway = await startInside({ dir, log })
      await expect.poll(() => lines.some((line) => line.includes('watched from now on'))).toBe(true)
      return gateway
    }

    test('each attachment is a file with the same bytes, whatever its name, encoding and place', async () => {
      const gateway = await start()
      const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7919) % 256))
      const inner = buildMail('inner', { body: 'A mail inside.' })
      server.deliver(
        buildMixed('files', [
          toPart('filename="../../AGENTS.md"', bytes),
          toPart("filename*=utf-8''%e8%ab%8b%e6%b1%82%e6%9b%b8.pdf", Buffer.from('%PDF')),
          toPart('filename="=?utf-8?Q?caf=C3=A9.txt?="', Buffer.from('coffee')),
          `Content-Type: text/plain; charset=iso-8859-1; name=latin.txt\r\nContent-Disposition: attachment\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\ncaf=E9`,
          `Content-Type: message/rfc822\r\nContent-Disposition: attachment; filename=inner.eml\r\n\r\n${inner}`,
        ]),
      )
      const { prompt, files } = await readShown(gateway)
      expect(Object.keys(files).toSorted()).toEqual([
        '1-_.._AGENTS.md',
        '2-請求書.pdf',
        '3-café.txt',
        '4-latin.txt',
        '5-inner.eml',
      ])
      expect(files['1-_.._AGENTS.md']?.equals(bytes)).toBe(true)
      expect(files['4-latin.txt']?.toString('latin1')).toBe('café')
      expect(files['5-inner.eml']?.toString()).toContain('A mail inside.')
      expect(prompt).toMatch(/\nhookloom-files\/[\da-f-]{36}\/2-請求書\.pdf \(1 kB\)\n/)
    })

    test('a mail that is an attachment and nothing else is a file', async () => {
      const gateway = await start()
      const headers =
        'MIME-Version: 1.0\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\nContent-Transfer-Encoding: base64'
      server.deliver(buildMail('only', { headers, body: Buffer.from('%PDF-1').toString('base64') }))
      const { files } = await readShown(gateway)
      expect(files['1-a.pdf']?.toString()).toBe('%PDF-1')
    })

    test('without the key, the files are only named', async () => {
      const gateway = await start({})
      server.deliver(buildMixed('files', [toPart('filename=a.pdf', Buffer.from('%PDF'))]))
      const { prompt, files } = await readShown(gateway)
      expect(files).toEqual({})
      expect(prompt).not.toContain('Files of this message')
    })

    test('the files of a mail with too many are counted', async () => {
      const gateway = await start()
      const parts = Array.from({ length: 23 }, (_, at) => toPart(`filename=${at}.pdf`, Buffer.from('%PDF')))
      server.deliver(buildMixed('many', parts))
      const { prompt, files } = await readShown(gateway)
      expect(Object.keys(files)).toHaveLength(20)
      expect(prompt).toContain('\n3 more: not kept, because a turn gets at most 20 files.\n')
    })

    test('an attachment that is too large is a line, and is not fetched', async () => {
      const gateway = await start()
      const big = toPart('filename=big.zip', Buffer.alloc(11 * 1024 * 1024))
      server.deliver(buildMixed('files', [big, toPart('filename=a.pdf', Buffer.from('%PDF'))]))
      const { prompt, files } = await readShown(gateway)
      expect(prompt).toContain('\n1-big.zip: not kept, because it is over 10 MiB.\n')
      expect(files['2-a.pdf']?.toString()).toBe('%PDF')
    })

    test.each([
      [
        'has too many parts',
        Array.from({ length: 9_000 }, (_, at) => `Content-Type: text/plain; name=${at}.txt\r\n\r\nx`),
      ],
      ['has a name that is too long', [`Content-Type: text/plain;\r\n name="${'a'.repeat(1_200_000)}"\r\n\r\nx`]],
    ])('a mail whose structure %s is delivered without files, and holds up no later mail', async (_, parts) => {
      const gateway = await start()
      server.deliver(buildMixed('large', parts))
      server.deliver(buildMail('later'))
      const read = async () => (await readSubjects(gateway.dir)).toSorted()
      await expect.poll(read, { timeout: 20_000 }).toEqual(['subject large', 'subject later'])
    })

    test('a kill between the store and the run loses no file, also of a list that is split into runs', async () => {
      const mapping = { id: 'mail', match: { path: 'imap' }, forEach: 'messages', messageTemplate: 'x', deliver: false }
      const { hooks } = toImapConfig(server, { attachments: true }) as { hooks: object }
      const config = { ...reading, hooks: { ...hooks, mappings: [mapping] } }
      const first = await startGateway({ config })
      await first.printed(/watched from now on/)
      const { dir } = first
      await runCommand(['pause', 'all', '--reason', 'a test'], { dir })
      server.deliver(buildMixed('files', [toPart('filename=a.pdf', Buffer.from('%PDF'))]))
      const count = async () => (await readStore(dir, (store) => store.deliveries({ limit: 9 }))).length
      await expect.poll(count).toBe(1)
      await first.kill()
      const second = await startGateway({ dir })
      await runCommand(['resume', 'all'], { dir })
      const { files } = await readShown({ dir })
      expect(files['1-a.pdf']?.toString()).toBe('%PDF')
      expect(await count()).toBe(1)
      await second.stop()
    })

    test('runs that wait for files share one connection, which ends when no run reads any more', async () => {
      const cable = await startCable(server.port)
      const gateway = await start({ attachments: true, port: cable.port })
      await runCommand(['pause', 'all', '--reason', 'a test'], { dir: gateway.dir })
      for (const id of ['a', 'b', 'c', 'd'])
        server.deliver(buildMixed(id, [toPart(`filename=${id}.pdf`, Buffer.from('%PDF'))]))
      await expect.poll(async () => (await readJobs(gateway)).length).toBe(4)
      expect(cable.made()).toBe(1)
      await runCommand(['resume', 'all'], { dir: gateway.dir })
      const isDone = async () => (await readJobs(gateway)).every(({ state }) => state === 'done')
      await expect.poll(isDone, { timeout: 20_000 }).toBe(true)
      for (const { steps } of await readJobs(gateway)) expect(JSON.stringify(steps)).toContain('.pdf (1 kB)')
      expect(cable.made()).toBe(2)
      await expect.poll(() => cable.connections(), { timeout: 20_000 }).toBe(1)
    })

    test('while the password is refused, all runs that wait for files log in once, and say why they wait', async () => {
      const gateway = await start()
      const { dir } = gateway
      await runCommand(['pause', 'all', '--reason', 'a test'], { dir })
      for (const id of ['a', 'b', 'c', 'd'])
        server.deliver(buildMixed(id, [toPart('filename=a.pdf', Buffer.from('%PDF'))]))
      await expect.poll(async () => (await readJobs(gateway)).length).toBe(4)
      await gateway.stop()
      const cable = await startCable(server.port)
      const file = join(dir, 'hookloom.jsonc')
      const config = JSON.parse(readFileSync(file, 'utf8'))
      Object.assign(config.hooks.imap, { password: 'wrong_9876543210', port: cable.port })
      writeFileSync(file, JSON.stringify(config))
      const again = await startInside({ dir })
      await runCommand(['resume', 'all'], { dir })
      const why = /refused the user or the password \(AUTHENTICATIONFAILED\)/
      const waiting = async () => (await readJobs(again)).filter(({ lastError }) => why.test(lastError ?? '')).length
      await expect.poll(waiting, { timeout: 20_000 }).toBe(4)
      // one of the watch, and one of the runs
      expect(cable.made()).toBe(2)
      const later = (await readJobs(again)).filter(({ lastError }) =>
        lastError?.includes('for all runs that wait for files'),
      )
      expect(later.length).toBeGreaterThan(0)
      await again.stop()
    })

    /** A mail that has its delivery, while its run waits. */
    async function holdMail(mail: string) {
      const gateway = await start()
      await runCommand(['pause', 'all', '--reason', 'a test'], { dir: gateway.dir })
      server.deliver(mail)
      const count = async () => (await readStore(gateway.dir, (store) => store.deliveries({ limit: 9 }))).length
      await expect.poll(count).toBe(1)
      return gateway
    }
    const remove = () => void server.admin('expunge', '-u', user, 'mailbox', 'INBOX', 'all')
    const create = (folder: string) => void server.admin('mailbox', 'create', '-u', user, folder)
    const move = (folder: string) => {
      create(folder)
      server.admin('move', '-u', user, folder, 'mailbox', 'INBOX', 'all')
    }

    test.each([
      ['was moved', () => move('Archive')],
      ['has another number', () => server.renumber()],
      ['was moved after a mail of the same size', () => (deliverTwin('Orders'), move('Archive'))],
    ])('a mail that %s before its run begins is found again', async (_, change) => {
      const gateway = await holdMail(ofTwoFiles)
      change()
      await runCommand(['resume', 'all'], { dir: gateway.dir })
      const { prompt, files } = await readShown(gateway)
      expect([files['1-a.pdf']?.toString(), files['2-b.pdf']?.toString()]).toEqual(['%PDF-mine', '%PDF-mine'])
      expect(prompt).toContain('/1-a.pdf (1 kB)')
    })

    test.each([
      ['was deleted', remove],
      ['was replaced by another one with its Message-ID and size', () => (deliverTwin('Archive'), remove())],
    ])('a mail that %s before its run begins runs, and its text says that the file is gone', async (_, change) => {
      const gateway = await holdMail(ofTwoFiles)
      change()
      await runCommand(['resume', 'all'], { dir: gateway.dir })
      const { prompt, files } = await readShown(gateway)
      expect(files).toEqual({})
      expect(prompt).toContain('\n1-a.pdf: gone, because its source no longer finds it: it was deleted or moved.\n')
    })

    const pdf = Buffer.from('%PDF-mine')
    const ofTwoFiles = buildMixed(
      'files',
      ['a', 'b'].map((name) => toPart(`filename=${name}.pdf`, pdf)),
    )
    const other = Buffer.from('%PDF-evil')
    /** The same mail with other contents of its files. */
    function deliverTwin(folder: string): void {
      create(folder)
      server.deliver(
        buildMixed(
          'files',
          ['a', 'b'].map((name) => toPart(`filename=${name}.pdf`, other)),
        ),
        folder,
      )
    }
  },
)

describe('attachments by Gmail', () => {
  const invoice = (attachmentId: string) => ({
    mimeType: 'application/pdf',
    filename: 'invoice.pdf',
    partId: '1',
    body: { attachmentId, size: 8 },
  })

  async function start(more: object) {
    const google = await startGoogle()
    const dir = makeMailDir(google, more)
    const file = join(dir, 'hookloom.jsonc')
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...reading }))
    const gateway = await startInside({ dir })
    await expect.poll(() => google.requests.some((line) => line.endsWith('/profile'))).toBe(true)
    return { google, gateway }
  }

  test('an attachment is a file with the same bytes, and none is fetched before the run', async () => {
    const { google, gateway } = await start({ attachments: true, includeBody: false })
    google.mailbox.receive({ id: 'a', subject: 'a', payload: invoice('att-1'), stored: { 'att-1': '%PDF-1.7' } })
    const { prompt, files } = await readShown(gateway)
    expect(files['1-invoice.pdf']?.toString()).toBe('%PDF-1.7')
    expect(prompt).toContain('/1-invoice.pdf (1 kB)')
    expect(google.requests.filter((line) => line.includes('/attachments/'))).toHaveLength(1)
    expect(google.faults).toEqual([])
  })

  test('the files of a mail with too many are counted', async () => {
    const { google, gateway } = await start({ attachments: true })
    const parts = Array.from({ length: 22 }, (_, at) => ({ ...invoice('att-1'), partId: `${at}` }))
    const payload = { mimeType: 'multipart/mixed', parts }
    google.mailbox.receive({ id: 'a', subject: 'a', payload, stored: { 'att-1': '%PDF-1.7' } })
    const { prompt } = await readShown(gateway)
    expect(prompt).toContain('\n2 more: not kept, because a turn gets at most 20 files.\n')
  })

  test('a mail that was deleted before its run begins runs without its file', async () => {
    const { google, gateway } = await start({ attachments: true })
    let gets = 0
    google.onRequest('/messages/a', () => {
      gets += 1
      // the first time, the mail is read for its delivery
      if (gets === 2) google.mailbox.remove('a')
    })
    google.mailbox.receive({ id: 'a', subject: 'a', payload: invoice('att-1'), stored: { 'att-1': '%PDF-1.7' } })
    const { prompt, files } = await readShown(gateway)
    expect(files).toEqual({})
    expect(prompt).toContain('1-invoice.pdf: gone, because its source no longer finds it: it was deleted or moved.')
  })

  test('a run on a gateway that does not watch the mailbox has its file too', async () => {
    const { google, gateway } = await start({ attachments: true })
    await runCommand(['pause', 'all', '--reason', 'a test'], { dir: gateway.dir })
    google.mailbox.receive({ id: 'a', subject: 'a', payload: invoice('att-1'), stored: { 'att-1': '%PDF-1.7' } })
    const count = async () => (await readStore(gateway.dir, (store) => store.deliveries({ limit: 9 }))).length
    await expect.poll(count, { timeout: 20_000 }).toBe(1)
    await gateway.stop()
    const other = await startInside({ dir: gateway.dir, env: { HOOKLOOM_SKIP_GMAIL: '1' } })
    await runCommand(['resume', 'all'], { dir: gateway.dir })
    expect((await readShown(other)).files['1-invoice.pdf']?.toString()).toBe('%PDF-1.7')
    await other.stop()
  })

  test('runs share one token, and the refusal of a consent', async () => {
    const { google, gateway } = await start({ attachments: true })
    const { dir } = gateway
    await runCommand(['pause', 'all', '--reason', 'a test'], { dir })
    const stored = { 'att-1': '%PDF-1.7' }
    for (const id of ['a', 'b', 'c']) google.mailbox.receive({ id, subject: id, payload: invoice('att-1'), stored })
    await expect.poll(async () => (await readJobs(gateway)).length, { timeout: 20_000 }).toBe(3)
    const count = () => google.requests.filter((line) => line.endsWith('/token')).length
    const before = count()
    google.refreshTokens.clear()
    await runCommand(['resume', 'all'], { dir })
    const waiting = async () =>
      (await readJobs(gateway)).filter(({ lastError }) => lastError?.includes('no longer accepts the consent')).length
    await expect.poll(waiting, { timeout: 20_000 }).toBe(3)
    expect(count() - before).toBe(1)
  })

  test('while Gmail refuses, the run waits for its file', async () => {
    const { google, gateway } = await start({ attachments: true })
    google.fail('/attachments/', { status: 403, body: { error: { code: 403 } } })
    google.mailbox.receive({ id: 'a', subject: 'a', payload: invoice('att-1'), stored: { 'att-1': '%PDF-1.7' } })
    expect((await readShown(gateway)).files['1-invoice.pdf']?.toString()).toBe('%PDF-1.7')
    expect(google.requests.filter((line) => line.includes('/attachments/'))).toHaveLength(2)
  })
})
