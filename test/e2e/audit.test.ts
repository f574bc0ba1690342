// The audit log of a whole gateway: who did what, what was refused to whom, and a log that survives a kill.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AuditFields } from '../../src/model/api/audit.ts'
import { configFile } from '../../src/gateway/config/text.ts'
import { openDatabase } from '../../src/store/sqlite/driver.ts'
import { findAuditBreak } from '../contract/audit.ts'
import { runCommand, runProcess } from './command.ts'
import { gatewayToken, makeFolder, startGateway, writeConfig } from './gateway.ts'
import { type Inside, readStore, startInside } from './inside.ts'

const [reader, operator] = ['reader-token-0123456789abcdef-01234', 'operator-token-0123456789abcdef-012']
const tokens = { grafana: { token: reader, may: ['read'] }, ops: { token: operator, may: ['operate'] } }
const mappings = [{ id: 'deploy', match: { path: 'deploy' }, messageTemplate: 'x', deliver: false }]
const slow = { timeout: 60_000 }

const start = () => startInside({ config: { hooks: { mappings }, tokens } })
const readRows = (dir: string) => readStore(dir, (store) => store.auditLog({ limit: 1_000, after: 0 }))

async function readEntries(dir: string): Promise<AuditFields[]> {
  return (await readRows(dir)).map(({ entry, hash }) => ({ ...(JSON.parse(entry) as Omit<AuditFields, 'hash'>), hash }))
}

function call({ adminUrl }: Pick<Inside, 'adminUrl'>, path: string, token = gatewayToken, body?: object) {
  return fetch(`${adminUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
    ...(body && { body: JSON.stringify(body) }),
  })
}

const pause = { what: 'all', reason: 'Night \u001B[2J', by: 'sam@desk' }

test(
  'the audit log has an entry before each act and one with its outcome, which say who acted and why',
  slow,
  async () => {
    const gateway = await start()
    expect((await call(gateway, '/api/pauses', operator, pause)).status).toBe(200)
    expect((await call(gateway, '/api/pauses', operator, { what: 'mapping:none' })).status).toBe(404)
    const entries = (await readEntries(gateway.dir)).filter(({ act }) => act === 'pause')
    const by = { kind: 'token', name: 'tokens.ops' }
    const gone = expect.stringContaining('has the name "mapping:none"')
    expect(entries).toMatchObject([
      { by, target: 'all', outcome: 'begun', details: { reason: 'Night ␛[2J', by: 'sam@desk' }, began: null },
      { by, target: 'all', outcome: 'done', reason: null, began: entries[0]?.number },
      { by, target: 'mapping:none', outcome: 'begun' },
      { by, target: 'mapping:none', outcome: 'refused', reason: gone, began: entries[2]?.number },
    ])
    const { stdout } = await runCommand(['audit'], { dir: gateway.dir })
    expect(stdout).toContain(`  done, of no. ${entries[0]?.number}\n`)
  },
)

test('a dry run has no audit entry, and the parameter for dry runs hides no other act', slow, async () => {
  const gateway = await start()
  expect((await call(gateway, '/api/refusals/retry?dryRun=true')).status).toBe(200)
  expect((await call(gateway, '/api/pauses?dryRun=true', operator, pause)).status).toBe(200)
  expect((await call(gateway, '/api/tokens?dryRun=1', gatewayToken, { name: 'ci', may: ['admin'] })).status).toBe(200)
  const ofTokens = (await readEntries(gateway.dir)).filter(({ by }) => by.kind !== 'command' && by.kind !== 'save')
  expect(ofTokens.map(({ act, outcome }) => `${act} ${outcome}`)).toEqual([
    'pause begun',
    'pause done',
    'token.new begun',
    'token.new done',
  ])
})

test(
  'an audit entry has no parameter that its call ignores, such as the time of a call for parked deliveries',
  slow,
  async () => {
    const gateway = await start()
    expect((await call(gateway, '/api/parked/retry?hook=deploy&since=2026-01-02T03:04:05Z')).status).toBe(200)
    const entries = (await readEntries(gateway.dir)).filter(({ act }) => act === 'retry.parked')
    expect(entries.map(({ target, details }) => ({ target, details }))).toEqual([
      { target: 'deploy', details: {} },
      { target: 'deploy', details: {} },
    ])
  },
)

test(
  'an act that a token may not do has an audit entry, until its client is locked out; an act with a wrong token has no entry',
  slow,
  async () => {
    const gateway = await start()
    expect((await call(gateway, '/api/pauses', 'wrong-token-0123456789abcdef-012345', pause)).status).toBe(401)
    for (let count = 0; count < 19; count += 1)
      expect((await call(gateway, '/api/tokens/ci/revoke', reader)).status).toBe(401)
    expect((await call(gateway, '/api/tokens/ci/revoke', reader)).status).toBe(429)
    const readTokenEntries = async () => (await readEntries(gateway.dir)).filter(({ by }) => by.kind === 'token')
    await expect.poll(async () => (await readTokenEntries()).length, slow).toBe(19)
    const [first] = await readTokenEntries()
    expect(first).toMatchObject({
      by: { name: 'tokens.grafana' },
      act: 'token.revoke',
      target: 'ci',
      outcome: 'refused',
      reason: 'The token has expired, or has not the right "admin".',
    })
  },
)

test(
  'the audit log has an entry for a save that goes live, for one that is refused, for a start and for a stop',
  slow,
  async () => {
    const gateway = await start()
    writeFileSync(join(gateway.dir, configFile), '{ "hooks": 5 }')
    const readReloads = async () => (await readEntries(gateway.dir)).filter(({ act }) => act === 'reload')
    await expect.poll(async () => (await readReloads()).at(-1)?.outcome, slow).toBe('refused')
    const [refused] = await readReloads()
    expect([refused?.by, refused?.reason]).toEqual([{ kind: 'save', name: configFile }, `${configFile} has 1 problem`])
    writeConfig(gateway.dir, { hooks: { mappings: [] }, tokens })
    await expect.poll(async () => (await readReloads()).at(-1)?.outcome, slow).toBe('done')
    expect((await readReloads()).at(-1)?.by).toEqual({ kind: 'save', name: configFile })
    await gateway.stop()
    const all = (await readEntries(gateway.dir)).map(({ act }) => act)
    expect([all[0], all.at(-1)]).toEqual(['start', 'stop'])
  },
)

test(
  'the chain of the audit log is intact after a kill during acts, and each outcome names the entry of its act',
  slow,
  async () => {
    const first = await startGateway({ config: { hooks: { mappings } } })
    const asked = Array.from({ length: 30 }, () =>
      call(first, '/api/pauses', gatewayToken, pause).catch(() => undefined),
    )
    await asked[3]
    await first.kill()
    await Promise.all(asked)
    const second = await startGateway({ dir: first.dir })
    await call(second, '/api/resume', gatewayToken, { what: 'all' })
    const rows = await readRows(second.dir)
    expect(findAuditBreak(rows)).toBeUndefined()
    const entries = await readEntries(second.dir)
    const acts = entries.filter(({ act }) => act === 'pause' || act === 'resume')
    const begun = acts.filter(({ outcome }) => outcome === 'begun').map(({ number }) => number)
    for (const { began } of acts.filter(({ outcome }) => outcome !== 'begun')) expect(begun).toContain(began)
    await second.stop()
  },
)

test(
  '"hookloom audit --verify" names the first entry that does not fit, and its exit code is then 1',
  slow,
  async () => {
    const gateway = await start()
    for (const what of ['all', 'mapping:deploy']) await call(gateway, '/api/pauses', operator, { what })
    await gateway.stop()
    const options = { dir: gateway.dir }
    const whole = await runCommand(['audit', '--verify'], options)
    const { number, hash } = (await readEntries(gateway.dir)).at(-1) ?? expect.unreachable()
    expect([whole.code, whole.stdout]).toEqual([
      0,
      `The entries 1 to ${number} fit. The hash of the last one is ${hash}\n`,
    ])
    const db = openDatabase(join(gateway.dir, 'state/hookloom.db'), { readOnly: false, busyMs: 2_000 })
    db.exec(`UPDATE audit SET entry = replace(entry, 'tokens.ops', 'tokens.sam') WHERE number = 3`)
    db.close()
    const changed = await runCommand(['audit', '--verify'], options)
    expect([changed.code, changed.stdout]).toEqual([
      1,
      'Entry 3 does not fit: it was changed: its hash is that of another text.\nThe entries 1 to 2 fit.\n',
    ])
    expect((await runCommand(['audit', '--verify', '--json'], options)).json()).toMatchObject([
      { ok: false, from: 1, to: 2, broken: { number: 3 } },
    ])
  },
)

test.skipIf(spawnSync('jq', ['--version']).status !== 0)(
  'a shell can check an audit entry without Hookloom, because jq writes its canonical form (needs jq)',
  slow,
  async () => {
    const gateway = await start()
    await call(gateway, '/api/pauses', operator, { what: 'all', reason: 'Größe "1"' })
    await gateway.stop()
    const folder = makeFolder()
    writeFileSync(join(folder, 'audit.jsonl'), (await runCommand(['audit', '--json'], { dir: gateway.dir })).stdout)
    const script = `for line in $(seq 1 $(wc -l < audit.jsonl)); do sed -n "$line"p audit.jsonl | jq -jcS 'del(.hash)' | sha256sum | cut -d' ' -f1; done`
    const env = { PATH: process.env['PATH'] ?? '' }
    const { stdout } = await runProcess('sh', ['-c', script], { env, cwd: folder })
    expect(stdout.trim().split('\n')).toEqual((await readEntries(gateway.dir)).map(({ hash }) => hash))
  },
)

test('an open stream ends when its token is revoked', slow, async () => {
  const gateway = await start()
  const made = await call(gateway, '/api/tokens', gatewayToken, { name: 'screen', may: ['read'] })
  const { token } = (await made.json()) as { token: string }
  const stream = await fetch(`${gateway.adminUrl}/api/stream`, { headers: { authorization: `Bearer ${token}` } })
  const frames = stream.body?.pipeThrough(new TextDecoderStream()).getReader() ?? expect.unreachable()
  expect((await frames.read()).value).toContain('event: status')
  expect((await call(gateway, '/api/tokens/screen/revoke')).status).toBe(200)
  for (let part = await frames.read(); !part.done; part = await frames.read()) expect(part.value).toBeDefined()
})
