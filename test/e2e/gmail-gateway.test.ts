// A mailbox watched inside the gateway and beside it: every mail one run, whatever dies in between.
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type FakeGoogle, startGoogle } from './fakes/google.ts'
import { type Gateway, gatewayToken, mainFile, startGateway, toChildEnv } from './gateway.ts'
import { makeMailDir, writeConsentFile } from './gmail-stage.ts'
import { runCommand } from './command.ts'
import { readStore } from './inside.ts'

const children = new Set<ChildProcess>()
afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
})

/** Subjects of the runs, in order of arrival. */
async function runs(dir: string): Promise<string[]> {
  const deliveries = await readStore(dir, (reader) => reader.deliveries({ limit: 500 }))
  return deliveries.flatMap(({ jobs }) =>
    jobs.flatMap(({ planned }) => (planned.kind === 'agent' && 'action' in planned ? [planned.action.message] : [])),
  )
}

/** Resolves when Google is asked for this, as often as it is. */
function asked(google: FakeGoogle, path: string): () => Promise<void> {
  let waiting: (() => void)[] = []
  google.before(path, () => {
    for (const resolve of waiting.splice(0)) resolve()
  })
  return () => new Promise((resolve) => (waiting = [...waiting, resolve]))
}

const watched = (gateway: Gateway) => gateway.printed(/watched from now on/)
const mail = (id: string) => ({ id, subject: `subject ${id}` })

describe('a mailbox inside the gateway', { timeout: 60_000 }, () => {
  test('makes of three mails three runs', async () => {
    const google = await startGoogle()
    const gateway = await startGateway({ dir: makeMailDir(google) })
    await watched(gateway)
    google.mailbox.receive(mail('a'), mail('b'), mail('c'))
    await gateway.printed(/new mails were delivered/)
    await gateway.stop()
    expect(await runs(gateway.dir)).toEqual(['subject a', 'subject b', 'subject c'])
    expect(google.faults).toEqual([])
  })

  test('is let alone with HOOKLOOM_SKIP_GMAIL=1', async () => {
    const google = await startGoogle()
    const gateway = await startGateway({ dir: makeMailDir(google), env: { HOOKLOOM_SKIP_GMAIL: '1' } })
    await gateway.stop()
    expect(google.requests).toEqual([])
  })

  test('loses no mail and runs none twice, when the process dies between fetch and store', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    let gateway = await startGateway({ dir })
    await watched(gateway)
    let isArmed = true
    google.before('/messages/b', async () => {
      // the first mail is fetched and nothing is stored
      if (isArmed) await gateway.kill()
      isArmed = false
    })
    google.mailbox.receive(mail('a'), mail('b'), mail('c'))
    await new Promise<void>((resolve) => gateway.child.once('exit', () => resolve()))
    expect(await runs(dir)).toEqual([])
    gateway = await startGateway({ dir })
    await gateway.printed(/new mails were delivered/)
    await gateway.kill()
    const next = asked(google, '/history')
    const asks = next()
    gateway = await startGateway({ dir })
    await asks
    await gateway.stop()
    expect(await runs(dir)).toEqual(['subject a', 'subject b', 'subject c'])
  })

  test('says reauth-required in /readyz, in the log and in status, and shows no token', async () => {
    const google = await startGoogle()
    google.refreshTokens.clear()
    const dir = makeMailDir(google)
    const gateway = await startGateway({ dir })
    await gateway.printed(/reauth-required/)
    const ready = await fetch(`${gateway.adminUrl}/readyz`, { headers: { authorization: `Bearer ${gatewayToken}` } })
    const body = await ready.text()
    expect(ready.status).toBe(200)
    expect(JSON.parse(body)).toMatchObject({
      degraded: true,
      problems: [{ detail: expect.stringContaining('reauth-required') }],
    })
    const status = await runCommand(['gmail', 'status'], { dir })
    expect(status.code).toBe(77)
    expect(status.stdout).toMatch(/reauth-required[^]*hookloom gmail auth/)
    for (const text of [body, gateway.output(), status.stdout]) expect(text).not.toMatch(/refresh-1|shh-client/)
    await gateway.stop()
  })

  test('is watched when the configuration of a running gateway names it', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    const file = join(dir, 'hookloom.jsonc')
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace('"account"', '// "account"'))
    const gateway = await startGateway({ dir })
    expect(google.requests).toEqual([])
    writeFileSync(file, text)
    await watched(gateway)
    await gateway.stop()
  })
})

describe('gmail run, beside the gateway', { timeout: 60_000 }, () => {
  function startRun(dir: string) {
    const child = spawn(process.execPath, [mainFile, 'gmail', 'run', '--config-dir', dir], {
      env: toChildEnv(),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    children.add(child)
    let text = ''
    const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
    const printed = (pattern: RegExp) =>
      new Promise<void>((resolve) => {
        const look = (chunk = '') => {
          text += chunk
          if (pattern.test(text)) resolve()
        }
        child.stdout.setEncoding('utf8').on('data', look)
        child.stderr.setEncoding('utf8').on('data', look)
        look()
      })
    return { child, exited, printed, output: () => text }
  }

  test('posts each mail once, also when it dies between the posts and the move of its place', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    const gateway = await startGateway({ dir, env: { HOOKLOOM_SKIP_GMAIL: '1' } })
    const first = startRun(dir)
    await first.printed(/watched from now on/)
    google.before('/messages/c', () => void first.child.kill('SIGKILL'))
    google.mailbox.receive(mail('a'), mail('b'), mail('c'))
    await first.exited
    const second = startRun(dir)
    await second.printed(/new mails were delivered/)
    const place = JSON.parse(readFileSync(join(dir, 'state/gmail-cursor.json'), 'utf8')) as { historyId: string }
    expect(place.historyId).toBe(String(google.mailbox.historyId))
    // as if it had died before it wrote its place
    writeFileSync(join(dir, 'state/gmail-cursor.json'), JSON.stringify({ ...place, historyId: '1000' }))
    second.child.kill('SIGTERM')
    expect(await second.exited).toBe(0)
    expect(await runCommand(['gmail', 'sync'], { dir })).toMatchObject({
      code: 0,
      stdout: '3 new mails were delivered.\n',
    })
    await gateway.stop()
    expect((await runs(dir)).toSorted()).toEqual(['subject a', 'subject b', 'subject c'])
  })

  test('leaves its place where it was while no gateway answers, and goes on when one does', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    expect((await runCommand(['gmail', 'sync'], { dir })).stdout).toMatch(/read from now on/)
    google.mailbox.receive(mail('a'))
    const failed = await runCommand(['gmail', 'sync'], { dir })
    expect(failed).toMatchObject({ code: 69, stderr: expect.stringContaining('No gateway') })
    const again = await startGateway({ dir, env: { HOOKLOOM_SKIP_GMAIL: '1' } })
    expect(await runCommand(['gmail', 'sync'], { dir })).toMatchObject({
      code: 0,
      stdout: '1 new mail was delivered.\n',
    })
    await again.stop()
    expect(await runs(dir)).toEqual(['subject a'])
  })

  test('ends with exit 77 and a plain sentence when the consent is revoked', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    writeConsentFile(dir, 'refresh-revoked')
    const { exited, output, printed } = startRun(dir)
    await printed(/✗ reauth-required/)
    expect(await exited).toBe(77)
    expect(output()).not.toContain('refresh-revoked')
  })
})
