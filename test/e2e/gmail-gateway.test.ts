// A mailbox that is watched inside the gateway, and in a separate process.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { runCommand } from './command.ts'
import { startGoogle } from './fakes/google.ts'
import { gatewayToken, startGateway } from './gateway.ts'
import { buildMail, makeMailDir, readSubjects, startRun, writeConsentFile } from './gmail-stage.ts'
import { startInside } from './inside.ts'

/** A gateway in this process, and a way to wait for a line of its log. */
async function startLogged(dir: string, env: Record<string, string> = {}) {
  const lines: string[] = []
  const waiting = new Set<() => void>()
  const note = (_: object, line: string) => {
    lines.push(line)
    for (const look of waiting) look()
  }
  const log = { ...silentLog, info: note, warn: note, error: note }
  const gateway = await startInside({ dir, log, env })
  const waitForLine = (pattern: RegExp) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (lines.some((line) => pattern.test(line))) resolve()
      }
      waiting.add(look)
      look()
    })
  return { ...gateway, lines, waitForLine }
}

const watchedLine = /watched from now on/

describe('mailboxes inside the gateway', () => {
  test('three mails of a watched mailbox become three runs', async () => {
    const google = await startGoogle()
    const gateway = await startLogged(makeMailDir(google))
    await gateway.waitForLine(watchedLine)
    google.mailbox.receive(buildMail('a'), buildMail('b'), buildMail('c'))
    await gateway.waitForLine(/new mails were delivered/)
    await gateway.stop()
    expect(await readSubjects(gateway.dir)).toEqual(['subject a', 'subject b', 'subject c'])
    expect(google.faults).toEqual([])
  })

  test('a mailbox is not watched with HOOKLOOM_SKIP_GMAIL=1', async () => {
    const google = await startGoogle()
    const gateway = await startLogged(makeMailDir(google), { HOOKLOOM_SKIP_GMAIL: '1' })
    await gateway.stop()
    expect(gateway.lines.filter((line) => line.includes('watches the mailbox'))).toEqual([])
    expect(google.requests).toEqual([])
  })

  test('a revoked consent is shown as reauth-required in /readyz, in the log and in the status, and no token is shown', async () => {
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

  test('a mailbox is watched once the configuration of a running gateway names it', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    const file = join(dir, 'hookloom.jsonc')
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace('"account"', '// "account"'))
    const gateway = await startLogged(dir)
    expect(google.requests).toEqual([])
    writeFileSync(file, text)
    await gateway.waitForLine(watchedLine)
    await gateway.stop()
  })
})

describe('a mailbox that a separate process reads', () => {
  test('hookloom gmail sync keeps its position while no gateway answers, and continues when one does', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    expect((await runCommand(['gmail', 'sync'], { dir })).stdout).toMatch(/read from now on/)
    google.mailbox.receive(buildMail('a'))
    const failed = await runCommand(['gmail', 'sync'], { dir })
    expect(failed).toMatchObject({ code: 69, stderr: expect.stringContaining('No gateway') })
    const again = await startInside({ dir, env: { HOOKLOOM_SKIP_GMAIL: '1' } })
    expect(await runCommand(['gmail', 'sync'], { dir })).toMatchObject({
      code: 0,
      stdout: '1 new mail was delivered.\n',
    })
    await again.stop()
    expect(await readSubjects(dir)).toEqual(['subject a'])
  })

  test('hookloom gmail run ends with exit code 77 and a plain sentence when the consent is revoked', async () => {
    const google = await startGoogle()
    const dir = makeMailDir(google)
    writeConsentFile(dir, 'refresh-revoked')
    const { exited, output, printed } = startRun(dir)
    await printed(/✗ reauth-required/)
    expect(await exited).toBe(77)
    expect(output()).not.toContain('refresh-revoked')
  })
})
