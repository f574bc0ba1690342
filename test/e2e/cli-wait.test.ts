// hookloom send --wait and hookloom wait: the exit code of a script that waits for its run.
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { gatewayToken, makeConfigDir } from './gateway.ts'
import { type Inside, startInside } from './inside.ts'
import { post } from './wire.ts'

const mappings = [
  { id: 'builds', match: { path: 'builds' }, messageTemplate: 'Build {{id}}', deliver: false },
  { id: 'told', match: { path: 'told' }, messageTemplate: 'Build {{id}}', deliver: false, result: 'text' },
  { id: 'each', match: { path: 'each' }, forEach: 'items', messageTemplate: 'x', deliver: false },
  {
    id: 'judged',
    match: { path: 'judged' },
    verdicts: ['pass', 'fail', 'later'],
    messageTemplate: '{{say}}',
    deliver: false,
  },
  { id: 'throws', match: { path: 'throws' }, transform: { module: 'throws.ts' } },
]
const files = { 'hooks/transforms/throws.ts': 'export default () => { throw new Error("out of yarn") }' }

async function start(sections: object = {}): Promise<Inside> {
  return startInside({ config: { hooks: { mappings }, ...sections }, files })
}

async function operate({ adminUrl }: Inside, path: string, method = 'POST'): Promise<void> {
  const body = method === 'POST' ? JSON.stringify({ what: 'all' }) : '{}'
  const request = { method, headers: { authorization: `Bearer ${gatewayToken}` }, body }
  expect((await fetch(`${adminUrl}${path}`, request)).status).toBe(200)
}

function send({ dir }: Inside, hook: string, payload: object, ...args: string[]) {
  const file = join(dir, 'payload.json')
  writeFileSync(file, JSON.stringify(payload))
  return runCommand(['send', hook, file, ...args], { dir })
}

const wait = ({ dir }: Pick<Inside, 'dir'>, runId: string, ...args: string[]) =>
  runCommand(['wait', runId, ...args], { dir })

describe('the exit codes of a command that waits', () => {
  test('exit code 0 means that all runs are done, and the reply is printed where the mapping shows it', async () => {
    const gateway = await start()
    const told = await send(gateway, 'told', { id: 7 }, '--wait')
    // on a slow machine, stderr also has lines about the progress
    expect([told.code, told.stderr.replaceAll(/^Waiting for .*\n/gm, '')]).toEqual([0, ''])
    expect(told.stdout).toMatch(/^200 \{.*\}\n[\da-f-]{36} done\n {2}.*Build 7/s)
    const each = await send(gateway, 'each', { items: [1, 2, 3] }, '--wait=60', '--json')
    expect([each.code, ...each.json().map(({ status, state }) => status ?? state)]).toEqual([
      0,
      200,
      'done',
      'done',
      'done',
    ])
    const wake = await send(gateway, 'wake', { text: 'x' }, '--wait')
    expect([wake.code, wake.stdout.split('\n').length]).toEqual([0, 2])
    const { runId } = JSON.parse((await post(gateway.port, '/hooks/builds', { id: 8 })).body) as { runId: string }
    expect(await wait(gateway, runId)).toMatchObject({ code: 0, stdout: `${runId} done\n` })
  })

  test('exit code 75 means that a run still waits, with the reason, and exit code 70 that it was cancelled', async () => {
    const gateway = await start()
    await operate(gateway, '/api/pauses')
    const early = await send(gateway, 'builds', {}, '--wait=1')
    expect([early.code, early.stdout]).toEqual([75, expect.stringMatching(/^202 .*\n[\da-f-]{36} queued: waits until/)])
    const runId = /"runId":"([^"]+)"/.exec(early.stdout)?.[1] ?? ''
    expect((await wait(gateway, runId, '--timeout', '0')).code).toBe(75)
    const waiting = wait(gateway, runId)
    await operate(gateway, `/api/runs/${runId}`, 'DELETE')
    expect(await waiting).toMatchObject({
      code: 70,
      stdout: expect.stringContaining('cancelled: The run was cancelled.'),
    })
  })

  test('exit code 70 means a dead run or a parked delivery, and no text of the failure is printed', async () => {
    const gateway = await start({
      runners: { gone: { kind: 'command', command: 'no-such-program' } },
      agents: { defaults: { runner: 'gone' } },
    })
    const dead = await send(gateway, 'builds', {}, '--wait')
    expect([dead.code, dead.stdout]).toEqual([70, expect.stringMatching(/ dead: The run failed\. "hookloom show /)])
    const parked = await send(gateway, 'throws', {}, '--wait')
    expect(parked.code).toBe(70)
    for (const { stdout, stderr } of [dead, parked]) expect(stdout + stderr).not.toMatch(/no-such-program|out of yarn/)
  })

  test('hookloom send prints the frame of a broken transform as lines below the answer', async () => {
    const gateway = await startInside({ config: { hooks: { mappings } }, files, development: true })
    const { stdout } = await send(gateway, 'throws', {})
    expect(stdout).toMatch(/^\d+ \{.*"detail":"[^"]*"\}\}\n {2}.*\n {4,}\| +\^/s)
  })

  test('the exit code is 0 for the first verdict of the list, 1 for another one, and 70 for none', async () => {
    // the reply of this command is the message inside the boundary
    const script = String.raw`const text = require('node:fs').readFileSync(0, 'utf8'); console.log(/---\n(.*)/.exec(text)[1])`
    const gateway = await start({
      runners: { mirror: { kind: 'command', command: process.execPath, args: ['-e', script] } },
      agents: { defaults: { runner: 'mirror' } },
    })
    for (const [say, code, said] of [
      ['Pass.', 0, 'pass'],
      ['later', 1, 'later'],
      ['fail', 1, 'fail'],
      ['It is fine.', 70, 'none'],
    ] as const) {
      const sent = await send(gateway, 'judged', { say }, '--wait')
      expect([sent.code, sent.stdout]).toEqual([code, expect.stringContaining(` done: verdict ${said}\n`)])
      const runId = /"runId":"([^"]+)"/.exec(sent.stdout)?.[1] ?? ''
      expect((await wait(gateway, runId)).code).toBe(code)
      const shown = await runCommand(['show', runId], { dir: gateway.dir })
      expect(shown.stdout).toMatch(new RegExp(`^ *verdict +${said}`, 'm'))
    }
  })

  test('the exit code for the id of an unknown run is 65, and without a gateway it is 69', async () => {
    const gateway = await start()
    const unknown = await wait(gateway, '01a1fb45-0ff5-7758-aed7-b1b0c25eeb26')
    expect([unknown.code, unknown.stderr]).toEqual([65, '✗ No run that this token started has this id.\n'])
    const dir = makeConfigDir()
    expect((await wait({ dir }, '01a1fb45-0ff5-7758-aed7-b1b0c25eeb26')).code).toBe(69)
    expect((await runCommand(['wait'], { dir })).code).toBe(64)
    expect((await runCommand(['wait', 'x', '--timeout', 'soon'], { dir })).code).toBe(64)
  })

  test('hookloom wait accepts a prefix of the id of a run, and waits for all runs of a delivery by its id', async () => {
    const gateway = await start()
    const { body } = await post(gateway.port, '/hooks/each', { items: [1, 2] })
    const { deliveryId, runIds } = JSON.parse(String(body)) as { deliveryId: string; runIds: [string, string] }
    const [one] = runIds
    expect(await wait(gateway, one.slice(0, -1))).toMatchObject({ code: 0, stdout: `${one} done\n` })
    const all = await wait(gateway, deliveryId)
    expect([all.code, all.stdout.trim().split('\n').toSorted()]).toEqual([
      0,
      runIds.map((id) => `${id} done`).toSorted(),
    ])
  })

  test('a wait continues through a restart of the gateway', async () => {
    const gateway = await start({ hooks: { mappings, maxWaiting: 1 } })
    await operate(gateway, '/api/pauses')
    const { runId } = JSON.parse((await post(gateway.port, '/hooks/builds', {})).body) as { runId: string }
    const waiting = wait(gateway, runId)
    // the command waits at the gateway once no place is left for another request
    const isPlaceTaken = async () => {
      const began = performance.now()
      await post(gateway.port, '/hooks/builds', {}, [['prefer', 'wait=1']])
      return performance.now() - began < 900
    }
    await expect.poll(isPlaceTaken).toBe(true)
    await gateway.stop()
    const again = await startInside({ dir: gateway.dir })
    await operate(again, '/api/resume')
    expect((await waiting).code).toBe(0)
  })
})
