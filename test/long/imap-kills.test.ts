// Each mail of a mailbox by IMAP causes one run, whenever the gateway dies.
import { expect, test } from 'vitest'
import { count } from '../counts.ts'
import { dovecotMissing, startDovecot } from '../e2e/fakes/dovecot.ts'
import { startGateway } from '../e2e/gateway.ts'
import { deliverMails, makeImapDir, readSubjects } from '../e2e/imap-stage.ts'

test.skipIf(dovecotMissing !== undefined)(
  `six kills while mails arrive lose no mail and run no mail twice${dovecotMissing ? ` (${dovecotMissing})` : ''}`,
  { timeout: 300_000 },
  async (context) => {
    const server = await startDovecot()
    const dir = makeImapDir(server, { folders: ['INBOX', 'Archive'] })
    server.admin('mailbox', 'create', '-u', 'mira@example.com', 'Archive')
    let gateway = await startGateway({ dir })
    await gateway.printed(/watched from now on.*watched from now on/s)
    const wanted: string[] = []
    for (let kill = 0; kill < 6; kill++) {
      const ids = Array.from({ length: 12 }, (_, index) => `${kill}-${index}`)
      wanted.push(...ids.map((id) => `subject ${id}`))
      const half = ids.length / 2
      deliverMails(server, ids.slice(0, half))
      // at another moment each time: before, between and after the commits of the mails
      const stored = kill % 3
      await expect
        .poll(async () => (await readSubjects(dir)).length)
        .toBeGreaterThanOrEqual(wanted.length - ids.length * 2 + stored)
      await gateway.kill()
      deliverMails(server, ids.slice(half), kill % 2 === 0 ? 'INBOX' : 'Archive')
      if (kill === 3) server.renumber()
      gateway = await startGateway({ dir })
    }
    await expect.poll(async () => (await readSubjects(dir)).length).toBe(wanted.length)
    deliverMails(server, ['last'])
    await expect.poll(() => readSubjects(dir)).toContain('subject last')
    expect((await readSubjects(dir)).toSorted()).toEqual([...wanted, 'subject last'].toSorted())
    count(context, { mails: wanted.length + 1, lost: 0, twice: 0, kills: 6 })
    await gateway.stop()
  },
)
