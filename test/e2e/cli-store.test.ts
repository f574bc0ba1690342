import { chmodSync, chownSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { runCommand, runProcess } from './command.ts'
import {
  type Gateway,
  mainFile,
  makeConfigDir,
  makeFolder,
  post,
  startGateway,
  toChildEnv,
  writeFiles,
} from './gateway.ts'

const broken = 'export default () => {\n  throw new Error("not yet")\n}\n'
const mended = 'export default () => ({ message: "mended" })\n'
const config = {
  // no heartbeat consumes the events while the test reads them
  agents: { defaults: { heartbeat: { every: 0 } } },
  hooks: {
    defaultSessionKey: 'hook:inbox',
    mappings: [
      {
        id: 'tickets',
        match: { path: 'tickets' },
        name: '{{by}}',
        messageTemplate: '{{text}}',
        sessionKey: 'hook:ticket:{{id}}',
      },
      { id: 'later', match: { path: 'later' }, transform: { module: 'later.ts' } },
    ],
  },
}

const deliveryFields =
  'deliveryId receivedAt hook source event mappingId repeats repeatedAt recovered edited generation node state actions'.split(
    ' ',
  )

describe('reading commands next to a running gateway', () => {
  let gateway: Gateway
  let wake: Record<string, unknown>
  let ticket: Record<string, unknown>
  let parked: Record<string, unknown>

  beforeAll(async () => {
    gateway = await startGateway({ config, files: { 'hooks/transforms/later.ts': broken } })
    wake = await post(gateway, 'wake', { text: 'The kettle boils' })
    ticket = await post(gateway, 'tickets', { id: 7, by: 'Eve\u001b]0;owned\u0007', text: 'no\u009b31m tea\u202e' })
    parked = await post(gateway, 'later', { any: 'thing' })
    await vi.waitFor(
      async () => {
        const { stdout } = await runCommand(['show', String(ticket['deliveryId']), '--json'], { dir: gateway.dir })
        if (!stdout.includes('"name":"wake"')) throw new Error(`The run has not ended:\n${stdout}`)
      },
      { timeout: 60_000, interval: 100 },
    )
  })

  async function read(...args: string[]): Promise<Record<string, unknown>[]> {
    const ran = await runCommand([...args, '--json'], { dir: gateway.dir })
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    return ran.json()
  }

  test('hookloom list shows each delivery with its documented fields, newest last', async () => {
    const listed = await read('list')
    for (const record of listed) expect(Object.keys(record)).toEqual(deliveryFields)
    expect(listed.map(({ deliveryId }) => deliveryId)).toEqual(
      [wake, ticket, parked].map(({ deliveryId }) => deliveryId),
    )
    expect(listed.map(({ state }) => state)).toEqual(['accepted', 'accepted', 'parked'])
    expect(listed[0]).toMatchObject({ hook: 'wake', mappingId: null, source: null, event: null })
    expect(listed[0]?.['actions']).toMatchObject([{ kind: 'wake', text: 'The kettle boils', mode: 'now' }])
    expect(listed[1]?.['actions']).toMatchObject([{ kind: 'agent', agentId: 'main', sessionKey: 'hook:ticket:7' }])
    expect(listed[2]).toMatchObject({ hook: 'later', mappingId: 'later', actions: [] })
  })

  test('hookloom list shows a summary of each delivery, and the error and the line of a parked delivery', async () => {
    const { stdout } = await runCommand(['list'], { dir: gateway.dir })
    expect(stdout).toMatch(new RegExp(`accepted .* The kettle boils +${String(wake['deliveryId'])}`))
    expect(stdout).toMatch(new RegExp(`accepted .*tea.* +${String(ticket['deliveryId'])}`))
    expect(stdout).toMatch(new RegExp(`parked .* Error: not yet · later.ts:2 +${String(parked['deliveryId'])}`))
  })

  test('hookloom list shows the newest --limit deliveries, or only those with the given --state', async () => {
    expect((await read('list', '--limit', '1')).map(({ deliveryId }) => deliveryId)).toEqual([parked['deliveryId']])
    expect((await read('list', '--state', 'parked')).map(({ state }) => state)).toEqual(['parked'])
    expect(await read('list', '--state', 'dropped')).toEqual([])
  })

  test('hookloom show lists the jobs and their steps, by delivery id and by run id', async () => {
    const [record] = await read('show', String(ticket['deliveryId']))
    expect(Object.keys(record ?? {})).toEqual(expect.arrayContaining([...deliveryFields, 'jobs', 'problem', 'log']))
    expect(record?.['jobs']).toEqual([
      expect.objectContaining({
        jobId: ticket['runId'],
        runId: ticket['runId'],
        kind: 'agent',
        sessionKey: 'hook:ticket:7',
        state: 'done',
        attempts: expect.any(Number),
        lastError: null,
        endedBy: null,
        steps: ['run', 'summary', 'wake', 'deliver'].map((name) =>
          expect.objectContaining({
            name,
            // heartbeats are off here
            state: name === 'wake' ? 'skipped' : 'done',
            at: expect.stringMatching(/^\d{4}-.*Z$/),
          }),
        ),
      }),
    ])
    expect(await read('show', String(ticket['runId']))).toEqual([record])
  })

  test('hookloom show explains why a delivery is parked, with file and line', async () => {
    const [record] = await read('show', String(parked['deliveryId']))
    expect(record).toMatchObject({ state: 'parked', problem: { code: 'transform-failed' }, jobs: [] })
    const { stdout } = await runCommand(['show', String(parked['deliveryId'])], { dir: gateway.dir })
    expect(stdout).toMatch(/later\.ts:2/)
  })

  test('hookloom show exits 65 for an unknown id', async () => {
    const { code, stderr } = await runCommand(['show', 'nothing'], { dir: gateway.dir })
    expect({ code, stderr }).toMatchObject({ code: 65, stderr: expect.stringContaining('"nothing"') })
  })

  test('hookloom events lists pending events, oldest first', async () => {
    const events = await read('events')
    // the run of the ticket ends before or after the other delivery is parked
    const [first, ...others] = events
    expect(first).toMatchObject({ text: 'The kettle boils', deliveryId: wake['deliveryId'], consumedAt: null })
    expect(others).toHaveLength(2)
    expect(others).toContainEqual(expect.objectContaining({ deliveryId: ticket['deliveryId'], consumedAt: null }))
    expect(others).toContainEqual(
      expect.objectContaining({ text: expect.stringContaining('later.ts'), consumedAt: null }),
    )
    const times = events.map(({ at }) => String(at))
    expect(times).toEqual(times.toSorted())
    for (const event of events) {
      expect(Object.keys(event)).toEqual(
        expect.arrayContaining(['sessionKey', 'text', 'at', 'deliveryId', 'consumedAt']),
      )
    }
  })

  test('hookloom sessions shows prompts with their boundary, and only one session if a key is given', async () => {
    const all = await read('sessions')
    expect(all.map(({ sessionKey }) => sessionKey)).toEqual(expect.arrayContaining(['main', 'hook:ticket:7']))
    const [session, ...others] = await read('sessions', 'hook:ticket:7')
    expect(others).toEqual([])
    expect(session).toMatchObject({
      sessionKey: 'hook:ticket:7',
      agentId: 'main',
      updatedAt: expect.stringMatching(/Z$/),
      messages: [
        { role: 'user', text: expect.stringContaining('EXTERNAL_UNTRUSTED_CONTENT'), runId: ticket['runId'] },
        { role: 'assistant', runId: ticket['runId'] },
      ],
    })
    const missing = await runCommand(['sessions', 'hook:ticket:8'], { dir: gateway.dir })
    expect(missing.code).toBe(65)
  })

  test('text from outside prints no control character, in tables and in JSON', async () => {
    const id = String(ticket['deliveryId'])
    for (const args of [['list'], ['show', id], ['events'], ['sessions', 'hook:ticket:7']]) {
      for (const flags of [[], ['--json']]) {
        const { stdout } = await runCommand([...args, ...flags], { dir: gateway.dir })
        // oxlint-disable-next-line no-control-regex
        expect(stdout).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
      }
    }
    const { stdout } = await runCommand(['show', id], { dir: gateway.dir })
    expect(stdout).toContain('tea')
  })

  test('hookloom list --refused shows refused requests since the start, and no accepted ones', async () => {
    await fetch(`${gateway.url}/wake`, { method: 'POST', body: '{"text":"let me in"}' })
    await post(gateway, 'agent', { message: ' ' })
    const refused = await read('list', '--refused')
    expect(refused).toMatchObject([
      { hook: 'wake', status: 401, code: 'unauthorized' },
      { hook: 'agent', status: 400, code: 'payload-invalid' },
    ])
    for (const refusal of refused) {
      const { whyNotKept, ...fields } = refusal
      expect(whyNotKept === undefined).toBe(refusal['isKept'])
      expect(Object.keys(fields).toSorted()).toEqual(
        'requestId receivedAt client credential path hook nearestHook signature status code error reason trace isStranger isKept proofs expects'
          .split(' ')
          .toSorted(),
      )
    }
    expect(await read('list', '--refused', '--limit', '1')).toEqual(refused.slice(-1))
  })

  test('hookloom list --refused shows which mapping a refused request matched, and why it was refused', async () => {
    await post(gateway, 'tickets', { id: 1, text: '' })
    await post(gateway, 'nobody', {})
    const { stdout } = await runCommand(['list', '--refused'], { dir: gateway.dir, isTerminal: true })
    expect(stdout).toMatch(/ tickets +400 tickets: .+$/m)
    expect(stdout).toMatch(/ nobody +404 No hook has this name\.$/m)
    expect(stdout.split('\n').filter((line) => line.length > 100)).toEqual([])
  })

  test('hookloom list --refused --hook lists the refusals of that hook only, and refuses filters that it cannot apply', async () => {
    await post(gateway, 'tickets', { id: 1, text: '' })
    await post(gateway, 'nobody', {})
    const hooks = (await read('list', '--refused', '--hook', 'nobody')).map(({ hook }) => hook)
    expect([...new Set(hooks)]).toEqual(['nobody'])
    const none = await runCommand(['list', '--refused', '--hook', 'elsewhere'], { dir: gateway.dir })
    expect(none.stdout).toBe('No refusal of the hook "elsewhere" since the gateway started.\n')
    const source = await runCommand(['list', '--refused', '--source', 'github'], { dir: gateway.dir })
    expect(source).toMatchObject({
      code: 64,
      stderr: expect.stringContaining("cannot be used with option '--refused'"),
    })
  })

  test('hookloom show explains a refusal by its request id, or by the beginning of the id', async () => {
    await post(gateway, 'tickets', { id: 1, text: '' })
    const refusal = (await read('list', '--refused')).at(-1)
    const id = String(refusal?.['requestId'])
    const shown = await runCommand(['show', id.slice(0, 8)], { dir: gateway.dir })
    expect(shown).toMatchObject({ code: 0, stderr: '' })
    expect(shown.stdout).toMatch(new RegExp(`^Refusal ${id}\n[^]*answer +400 payload-invalid: [^]*✓ +tickets `))
    expect((await read('show', id))[0]).toMatchObject({ requestId: id, code: 'payload-invalid' })
    const unknown = await runCommand(['show', 'ffffffff'], { dir: gateway.dir })
    expect(unknown).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('No delivery, run or refusal has the id'),
    })
  })

  test('hookloom list reads the store even without a running gateway', async () => {
    const before = await read('list')
    await gateway.stop()
    expect(await read('list')).toEqual(before)
    const refused = await runCommand(['list', '--refused'], { dir: gateway.dir })
    expect(refused).toMatchObject({ code: 69, stdout: '', stderr: expect.stringContaining('hookloom start') })
  })
})

// root can read everything, so the command runs as another user
test.skipIf(process.getuid?.() !== 0)('hookloom list exits 77 for a user who may not read the store', async () => {
  const gateway = await startGateway({ config })
  const as = { env: toChildEnv(), uid: 65_534, gid: 65_534 }
  const { code, stdout, stderr } = await runProcess(
    process.execPath,
    [mainFile, 'list', '--config-dir', gateway.dir],
    as,
  )
  expect({ code, stdout }).toEqual({ code: 77, stdout: '' })
  expect(stderr).toContain('cannot be read: permission denied')
})

test.skipIf(process.getuid?.() !== 0)(
  'hookloom check works in a folder that its user may not enter, as after `sudo -u`',
  async () => {
    const dir = makeConfigDir()
    const init = await runCommand(['init'], { dir: join(dir, 'config') })
    expect(init.code).toBe(0)
    const as = { env: toChildEnv(), uid: 65_534, gid: 65_534 }
    for (const path of ['', ...readdirSync(dir, { recursive: true, encoding: 'utf8' })])
      chownSync(join(dir, path), as.uid, as.gid)
    const cwd = makeFolder()
    chmodSync(cwd, 0o700)
    const args = [mainFile, 'check', '--config-dir', join(dir, 'config')]
    const { code, stdout } = await runProcess(process.execPath, args, { ...as, cwd })
    expect(stdout).toMatch(/✓ transform github-pull-request\.ts: builds and loads/)
    expect(code).toBe(0)
  },
)

test('hookloom store copy writes a file relative to the config directory, and the copy continues the chain of the audit log', async () => {
  const gateway = await startGateway({ config })
  await gateway.stop()
  const copied = await runCommand(['store', 'copy', '--to', 'state/copy.db'], { dir: gateway.dir })
  expect(copied).toMatchObject({ code: 0, stderr: '' })
  expect(existsSync(join(gateway.dir, 'state/copy.db'))).toBe(true)
  writeFileSync(
    join(gateway.dir, 'hookloom.jsonc'),
    readFileSync(join(gateway.dir, 'hookloom.jsonc'), 'utf8').replace('{', '{ "store": { "file": "state/copy.db" },'),
  )
  expect(await runCommand(['audit', '--verify'], { dir: gateway.dir })).toMatchObject({ code: 0 })
  const { stdout } = await runCommand(['audit', '--json'], { dir: gateway.dir })
  const entries = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as object)
  expect(entries.at(-1)).toMatchObject({
    act: 'store.copy',
    by: { kind: 'command', name: expect.stringContaining('(hookloom store copy)') },
    target: join(gateway.dir, 'state/copy.db'),
    details: { from: join(gateway.dir, 'state/hookloom.db') },
    outcome: 'done',
  })
})

describe('an empty store', () => {
  test.each([
    ['list', 'No delivery yet.'],
    ['events', 'No system event yet.'],
    ['sessions', 'No session yet.'],
  ])('the command %s says that an empty store has nothing, and exits 0', async (command, sentence) => {
    const dir = makeConfigDir()
    expect(await runCommand([command], { dir })).toMatchObject({ code: 0, stdout: `${sentence}\n`, stderr: '' })
    expect(await runCommand([command, '--json'], { dir })).toMatchObject({ code: 0, stdout: '' })
  })
})

describe('commands that change something in the store', () => {
  test('hookloom retry runs a parked delivery again, and hookloom drop ends one for good', async () => {
    const sign = join(makeFolder(), 'open')
    const waiting = `import { existsSync } from 'node:fs'
      export default () => {
        if (!existsSync(${JSON.stringify(sign)})) throw new Error('not yet')
        return { message: 'now' }
      }`
    const gateway = await startGateway({ config, files: { 'hooks/transforms/later.ts': waiting } })
    const { dir } = gateway
    const ids = [await post(gateway, 'later', {}), await post(gateway, 'later', {})].map(({ deliveryId }) =>
      String(deliveryId),
    )
    const [kept = '', unwanted = ''] = ids
    const still = await runCommand(['retry', kept, '--json'], { dir })
    expect(still.json()).toEqual([{ deliveryId: kept, state: 'parked', jobs: [] }])
    expect(still.code).toBe(70)
    expect(await runCommand(['retry', kept], { dir })).toMatchObject({
      code: 70,
      stdout: expect.stringMatching(
        new RegExp(
          `^${kept} ran again and is parked: transforms/later.ts threw an Error at later.ts:3. "hookloom show ${kept}" shows more\\.\n$`,
        ),
      ),
    })
    const dropped = await runCommand(['drop', unwanted, '--json'], { dir })
    expect(dropped.json()).toEqual([{ deliveryId: unwanted, state: 'dropped' }])
    expect(await runCommand(['drop', unwanted], { dir })).toMatchObject({ code: 65, stdout: '' })

    writeFileSync(sign, '')
    const ran = await runCommand(['retry', kept], { dir })
    expect(ran).toMatchObject({ code: 0, stderr: '', stdout: `${kept} ran again and is accepted.\n` })
    const states = (await runCommand(['list', '--json'], { dir })).json().map(({ state }) => state)
    expect(states).toEqual(['accepted', 'dropped'])
    expect(await runCommand(['retry', unwanted], { dir })).toMatchObject({ code: 65 })
    expect(await runCommand(['retry', 'nothing'], { dir })).toMatchObject({ code: 65 })
    await gateway.stop()
    expect(await runCommand(['retry', kept], { dir })).toMatchObject({ code: 69 })
  })

  test('hookloom list --dead shows dead runs and heartbeats with the reason, and hookloom retry takes their ids', async () => {
    const { dir, ...gateway } = await startGateway({
      config: {
        runners: { gone: { kind: 'command', command: 'no-such-program' } },
        agents: { defaults: { runner: 'gone', heartbeat: { every: '30m', minIntervalSeconds: 1 } } },
      },
    })
    const { runId, deliveryId } = await post(gateway, 'agent', { message: 'Look', wakeMode: 'now' })
    const dead = await vi.waitFor(
      async () => {
        const found = (await runCommand(['list', '--dead', '--json'], { dir })).json()
        expect(found.map(({ kind }) => kind)).toEqual(['agent', 'heartbeat'])
        return found
      },
      { timeout: 60_000, interval: 100 },
    )
    const why = expect.stringContaining('"no-such-program" was not found')
    const heartbeat = String(dead[1]?.['jobId'])
    expect(dead).toMatchObject([
      { jobId: runId, deliveryId, lastError: why },
      { jobId: heartbeat, deliveryId: null, lastError: why },
    ])
    const listed = await runCommand(['list', '--dead'], { dir })
    expect(listed.stdout).toMatch(new RegExp(`${String(runId)}  The program "no-such-program" was not found`))
    const findings = (await runCommand(['doctor', '--json'], { dir })).json()
    expect(findings.find(({ name }) => name === 'store')).toMatchObject({
      ok: false,
      severity: 'warning',
      detail: expect.stringMatching(/2 dead[^]*"hookloom list --dead"/),
    })
    const shown = await runCommand(['show', heartbeat], { dir })
    expect(shown.stdout).toContain(`"hookloom retry ${heartbeat}" runs it again.`)
    const retried = await runCommand(['retry', heartbeat, '--json'], { dir })
    expect(retried.json()).toEqual([{ deliveryId: null, state: 'queued', jobs: [heartbeat] }])
    const again = await runCommand(['retry', String(runId)], { dir })
    expect(again).toMatchObject({ code: 0, stdout: `${String(runId)}: its dead job is queued again.\n` })
    expect(await runCommand(['list', '--dead', '--state', 'parked'], { dir })).toMatchObject({ code: 64 })
  })

  test('hookloom retry --dead retries all dead runs, and says so in one line', async () => {
    const { dir, ...gateway } = await startGateway({
      config: {
        runners: { gone: { kind: 'command', command: 'no-such-program' } },
        agents: { defaults: { runner: 'gone', heartbeat: { every: 0 } } },
      },
    })
    const posted = [await post(gateway, 'agent', { message: 'One' }), await post(gateway, 'agent', { message: 'Two' })]
    const countDead = async () => (await runCommand(['list', '--dead', '--json'], { dir })).json().length
    const waitsFor = { timeout: 60_000, interval: 100 }
    await vi.waitFor(async () => expect(await countDead()).toBe(2), waitsFor)

    const retried = await runCommand(['retry', '--dead', '--json'], { dir })
    expect(retried.json()).toEqual(
      posted.map(({ deliveryId, runId }) => ({ deliveryId, state: 'accepted', jobs: [runId] })),
    )
    await vi.waitFor(async () => expect(await countDead()).toBe(2), waitsFor)
    expect(await runCommand(['retry', '--dead'], { dir })).toMatchObject({ stdout: '2 dead runs are queued again.\n' })
    expect(await runCommand(['retry'], { dir })).toMatchObject({ code: 64 })
    expect(await runCommand(['retry', 'x', '--dead'], { dir })).toMatchObject({ code: 64 })
  })

  test('a parked delivery runs by itself when a gateway starts with a corrected transform', async () => {
    const first = await startGateway({ config, files: { 'hooks/transforms/later.ts': broken } })
    const { deliveryId } = await post(first, 'later', {})
    expect(await first.stop()).toBe(0)
    const second = await startGateway({ dir: first.dir, files: { 'hooks/transforms/later.ts': mended } })
    await second.printed(/parked deliveries ran again/)
    const [record] = (await runCommand(['list', '--json'], { dir: first.dir })).json()
    expect(record).toMatchObject({ deliveryId, state: 'accepted' })
  })

  test('a command with the gateway token of another gateway is refused and changes nothing', async () => {
    const gateway = await startGateway({ config, files: { 'hooks/transforms/later.ts': broken } })
    const { deliveryId } = await post(gateway, 'later', {})
    const stranger = makeConfigDir({ config: { gateway: { token: 'another-token-0123456789abcdef' } } })
    const address = readFileSync(join(gateway.dir, 'state/gateway.json'), 'utf8')
    writeFiles(stranger, { 'state/gateway.json': address })
    const { code, stderr } = await runCommand(['drop', String(deliveryId)], { dir: stranger })
    expect({ code, stderr }).toMatchObject({ code: 77, stderr: expect.stringContaining('gateway token') })
    const [record] = (await runCommand(['list', '--json'], { dir: gateway.dir })).json()
    expect(record).toMatchObject({ deliveryId, state: 'parked' })
  })
})
