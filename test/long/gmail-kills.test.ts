// Each mail causes one run, whichever process dies at any moment.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommand } from '../e2e/command.ts'
import { type FakeGoogle, startGoogle } from '../e2e/fakes/google.ts'
import { startGateway } from '../e2e/gateway.ts'
import { buildMail, makeMailDir, readSubjects, startRun } from '../e2e/gmail-stage.ts'

/** Returns a function that resolves at the next request to Google for this path. */
function watchRequests(google: FakeGoogle, path: string): () => Promise<void> {
  let waiting: (() => void)[] = []
  google.onRequest(path, () => {
    for (const resolve of waiting.splice(0)) resolve()
  })
  return () => new Promise((resolve) => (waiting = [...waiting, resolve]))
}

test(
  'a mailbox inside the gateway loses no mail and runs no mail twice, even if the process dies between fetch and store',
  { timeout: 120_000 },
  async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    let gateway = await startGateway({ dir })
    await gateway.printed(/watched from now on/)
    let isArmed = true
    google.onRequest('/messages/b', async () => {
      // the first mail is fetched, but nothing is stored
      if (isArmed) await gateway.kill()
      isArmed = false
    })
    google.mailbox.receive(buildMail('a'), buildMail('b'), buildMail('c'))
    await new Promise<void>((resolve) => gateway.child.once('exit', () => resolve()))
    expect(await readSubjects(dir)).toEqual([])
    gateway = await startGateway({ dir })
    await gateway.printed(/new mails were delivered/)
    await gateway.kill()
    const next = watchRequests(google, '/history')
    const asks = next()
    gateway = await startGateway({ dir })
    await asks
    await gateway.stop()
    expect(await readSubjects(dir)).toEqual(['subject a', 'subject b', 'subject c'])
  },
)

test(
  'hookloom gmail run causes one run for each mail, even if it dies between the posts and the update of its position',
  { timeout: 120_000 },
  async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    const gateway = await startGateway({ dir, env: { HOOKLOOM_SKIP_GMAIL: '1' } })
    const first = startRun(dir)
    await first.printed(/watched from now on/)
    google.onRequest('/messages/c', () => void first.child.kill('SIGKILL'))
    google.mailbox.receive(buildMail('a'), buildMail('b'), buildMail('c'))
    await first.exited
    const second = startRun(dir)
    await second.printed(/new mails were delivered/)
    const place = JSON.parse(readFileSync(join(dir, 'state/gmail-cursor.json'), 'utf8')) as { historyId: string }
    expect(place.historyId).toBe(String(google.mailbox.historyId))
    // as if the process had died before it wrote its position
    writeFileSync(join(dir, 'state/gmail-cursor.json'), JSON.stringify({ ...place, historyId: '1000' }))
    second.child.kill('SIGTERM')
    expect(await second.exited).toBe(0)
    expect(await runCommand(['gmail', 'sync'], { dir })).toMatchObject({
      code: 0,
      stdout: '3 new mails were delivered.\n',
    })
    await gateway.stop()
    expect((await readSubjects(dir)).toSorted()).toEqual(['subject a', 'subject b', 'subject c'])
  },
)
