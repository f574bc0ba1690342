// A mailbox by IMAP, on a real server.
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { runCommand } from './command.ts'
import { buildMail, type Dovecot, dovecotMissing, startCable, startDovecot, user } from './fakes/dovecot.ts'
import { startGateway } from './gateway.ts'
import { deliverMails, makeImapDir, readSubjects, toImapConfig } from './imap-stage.ts'
import { readDegradedBy, startInside } from './inside.ts'

/** A gateway in this process, and a way to wait for a line of its log. */
async function startLogged(dir: string) {
  const lines: string[] = []
  const note = (fields: object, line: string) => void lines.push(`${line} ${JSON.stringify(fields)}`)
  const log = { ...silentLog, info: note, warn: note, error: note }
  const gateway = await startInside({ dir, log })
  async function waitForLine(pattern: RegExp, count = 1): Promise<void> {
    await expect.poll(() => lines.filter((line) => pattern.test(line)).length).toBeGreaterThanOrEqual(count)
  }
  return { ...gateway, lines, waitForLine }
}

const watched = /watched from now on/

describe.skipIf(dovecotMissing !== undefined)(
  `a mailbox by IMAP${dovecotMissing ? ` (${dovecotMissing})` : ''}`,
  () => {
    let server: Dovecot
    beforeAll(async () => {
      server = await startDovecot()
    })
    afterEach(() => server.clear())

    test('new mails arrive at once by IDLE, and those from before the first start do not', async () => {
      deliverMails(server, ['old'])
      const gateway = await startLogged(makeImapDir(server))
      await gateway.waitForLine(watched)
      deliverMails(server, ['a', 'b', 'c'])
      await expect.poll(() => readSubjects(gateway.dir)).toEqual(['subject a', 'subject b', 'subject c'])
      await gateway.stop()
    })

    test('mails that arrive while the gateway is down are delivered by its next start, once', async () => {
      const dir = makeImapDir(server)
      const first = await startLogged(dir)
      await first.waitForLine(watched)
      await first.stop()
      deliverMails(
        server,
        Array.from({ length: 25 }, (_, index) => `m${index}`),
      )
      const wanted = Array.from({ length: 25 }, (_, index) => `subject m${index}`)
      const second = await startLogged(dir)
      await expect.poll(async () => (await readSubjects(dir)).toSorted()).toEqual(wanted.toSorted())
      await second.stop()
      const third = await startLogged(dir)
      deliverMails(server, ['last'])
      await expect
        .poll(async () => (await readSubjects(dir)).toSorted())
        .toEqual([...wanted, 'subject last'].toSorted())
      await third.stop()
    })

    test('after a change of the numbers, no mail is lost and none is delivered twice', async () => {
      deliverMails(server, ['old'])
      const deliveredAt = Date.now()
      // the server keeps whole seconds
      await vi.waitUntil(() => Date.now() > deliveredAt + 1_000, { timeout: 60_000 })
      const dir = makeImapDir(server)
      const first = await startLogged(dir)
      await first.waitForLine(watched)
      deliverMails(server, ['a'])
      await expect.poll(() => readSubjects(dir)).toEqual(['subject a'])
      await first.stop()
      deliverMails(server, ['b'])
      server.renumber()
      const second = await startLogged(dir)
      await second.waitForLine(/has numbered the mails again/)
      deliverMails(server, ['c'])
      await expect
        .poll(async () => (await readSubjects(dir)).toSorted())
        .toEqual(['subject a', 'subject b', 'subject c'])
      await second.stop()
    })

    test('a connection that is cut is made again, and the mails of the meantime are delivered', async () => {
      const cable = await startCable(server.port)
      const gateway = await startLogged(makeImapDir({ port: cable.port }))
      await gateway.waitForLine(watched)
      await expect.poll(() => cable.connections()).toBe(1)
      cable.cut()
      deliverMails(server, ['a'])
      await gateway.waitForLine(/does not answer, or ended the connection/)
      await expect.poll(() => readSubjects(gateway.dir)).toEqual(['subject a'])
      await expect.poll(() => readDegradedBy(gateway)).toEqual([])
      deliverMails(server, ['b'])
      await expect.poll(() => readSubjects(gateway.dir)).toEqual(['subject a', 'subject b'])
      await gateway.stop()
    })

    test('a wrong password is a problem of the gateway and of doctor that says what to correct, and is not shown', async () => {
      const dir = makeImapDir(server, { password: 'wrong_9876543210' })
      const gateway = await startLogged(dir)
      const why = /localhost refused the user or the password \(AUTHENTICATIONFAILED\)\. Correct hooks\.imap\.user/
      await expect.poll(() => readDegradedBy(gateway)).toEqual([expect.stringMatching(why)])
      await gateway.waitForLine(why)
      const probed = await runCommand(['doctor', '--json'], { dir })
      expect(probed.json()).toContainEqual(
        expect.objectContaining({ name: 'source-imap', ok: false, detail: expect.stringMatching(why) }),
      )
      expect(gateway.lines.join('\n') + probed.stdout).not.toContain('wrong_9876543210')
      await gateway.stop()
    })

    test('several folders are watched, and one that does not exist is a problem until it does', async () => {
      server.admin('mailbox', 'create', '-u', user, 'Orders')
      const dir = makeImapDir(server, { folders: ['INBOX', 'Orders', 'Bills'], pollSeconds: 5 })
      const gateway = await startLogged(dir)
      const why = 'IMAP: The folder "Bills" of hooks.imap.folders does not exist. The other folders are watched.'
      await expect.poll(() => readDegradedBy(gateway)).toEqual([why])
      await gateway.waitForLine(watched, 2)
      deliverMails(server, ['a'])
      await expect.poll(() => readSubjects(dir)).toEqual(['subject a'])
      deliverMails(server, ['b'], 'Orders')
      await expect.poll(() => readSubjects(dir)).toEqual(['subject a', 'subject b'])
      // the same mail in another folder is the same mail
      server.admin('copy', '-u', user, 'Orders', 'mailbox', 'INBOX', 'all')
      server.admin('mailbox', 'create', '-u', user, 'Bills')
      await expect.poll(() => readDegradedBy(gateway)).toEqual([])
      await gateway.waitForLine(watched, 3)
      deliverMails(server, ['c'], 'Bills')
      await expect.poll(() => readSubjects(dir)).toEqual(['subject a', 'subject b', 'subject c'])
      await gateway.stop()
    })

    test('a mail over the limit is delivered with its headers and the text that was read', async () => {
      const dir = makeImapDir(server)
      const gateway = await startLogged(dir)
      await gateway.waitForLine(watched)
      server.deliver(buildMail('big', { body: 'x'.repeat(70).concat('\r\n').repeat(70_000) }))
      deliverMails(server, ['after'])
      await expect.poll(() => readSubjects(dir)).toEqual(['subject big', 'subject after'])
      await gateway.stop()
    })

    test('TLS is the default, and a certificate that is not trusted is a problem', async () => {
      const imap = { port: server.tlsPort, security: undefined }
      const dir = makeImapDir(server, imap)
      const gateway = await startLogged(dir)
      const why = /has a certificate that is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\).*NODE_EXTRA_CA_CERTS/
      await expect.poll(() => readDegradedBy(gateway)).toEqual([expect.stringMatching(why)])
      await gateway.stop()
      for (const more of [imap, { port: server.port, security: 'starttls' }]) {
        const trusting = await startGateway({
          config: toImapConfig(server, more),
          env: { NODE_EXTRA_CA_CERTS: server.certificate },
        })
        await trusting.printed(watched)
        expect(await trusting.stop()).toBe(0)
      }
    })

    test('doctor logs in and opens the folders', async () => {
      const { json } = await runCommand(['doctor', '--json'], { dir: makeImapDir(server) })
      const detail = 'localhost accepts the password, has the folders, and reports new mails.'
      expect(json()).toContainEqual({ name: 'source-imap', ok: true, detail })
    })
  },
)

test.each([
  ['plain text to another machine', { host: 'mail.example.com' }, /hooks\.imap\.security must be "tls" or "starttls"/],
  ['a missing password', { password: undefined }, /hooks\.imap\.password/],
  ['an unknown key', { pasword: 'x' }, /hooks\.imap.*"?pasword/],
])('check reports %s in hooks.imap', async (_, more, why) => {
  const { code, stdout } = await runCommand(['check'], { dir: makeImapDir({ port: 143 }, more) })
  expect(stdout).toMatch(why)
  expect(code).toBe(78)
})
