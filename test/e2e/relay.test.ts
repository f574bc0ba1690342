// A relay at a public address takes requests for a gateway that has none, and keeps them until the gateway has taken them.
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { count } from '../counts.ts'
import { generateHomeKey } from '../../src/plugins/sources/relay/keys.ts'
import { runBuilt, runCommand } from './command.ts'
import { describeEngines } from './engines.ts'
import { makeConfigDir, makeFolder, startGateway } from './gateway.ts'
import { readDegradedBy, startInside } from './inside.ts'
import {
  countInMemory,
  findInFiles,
  metaWord,
  postSigned,
  postTimed,
  readRelayed,
  sealSigned,
  startFalseRelay,
  startRelayProcess,
  toChallenge,
  toRelayed,
} from './relay-stage.ts'

describeEngines('requests by a relay', (start) => {
  test('a signed request gets the answer of the gateway, and is one run, however often it is sent', async () => {
    const relay = await startRelayProcess()
    const { config, toUrl, awaitHome } = toRelayed(relay.url)
    const gateway = await start({ config })
    await awaitHome()
    const answers = [await postSigned(toUrl('deploy'), { id: 'a1' }), await postSigned(toUrl('deploy'), { id: 'a2' })]
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(await answers[0]?.json()).toMatchObject({ ok: true, deliveryId: expect.any(String) })
    expect(await readRelayed(gateway)).toEqual(['a1', 'a2'])
    const unsigned = await fetch(toUrl('deploy'), { method: 'POST', body: '{"id":"a3"}' })
    expect([unsigned.status, await unsigned.json()]).toEqual([401, expect.objectContaining({ ok: false })])
    expect((await postSigned(toUrl('nothing'), { id: 'a4' })).status).not.toBe(200)
    expect(await readRelayed(gateway)).toEqual(['a1', 'a2'])
  })

  test('a request that comes while no gateway runs gets 202, and runs later by the time at which it came', async () => {
    const relay = await startRelayProcess()
    const { config, toUrl, awaitHome } = toRelayed(relay.url)
    const first = await start({ config })
    await awaitHome()
    await first.stop()
    // the scheme accepts a time of the last 300 seconds
    const signedAt = Math.floor(Date.now() / 1_000) - 296
    expect((await postTimed(toUrl('pay'), { id: 'late' }, signedAt)).status).toBe(202)
    await sleep(Math.max(0, (signedAt + 302) * 1_000 - Date.now()))
    const gateway = await start({ dir: first.dir })
    await expect.poll(() => readRelayed(gateway)).toEqual(['late'])
    expect((await postTimed(`${gateway.url}/pay`, { id: 'direct' }, signedAt)).status).toBe(401)
    expect((await postTimed(toUrl('pay'), { id: 'again' }, signedAt)).status).toBe(401)
    expect(await readRelayed(gateway)).toEqual(['late'])
  })

  test('an envelope that a false relay hands over again, under any number and epoch, runs once, and a changed one never', async () => {
    const relay = await startFalseRelay()
    const { config, key } = toRelayed(relay.url)
    const first = sealSigned(key, { id: 'f1' })
    const second = sealSigned(key, { id: 'f2' })
    const changed = Buffer.from(second)
    changed.writeUInt8(changed.readUInt8(changed.length - 40) ^ 1, changed.length - 40)
    relay.hand(
      { epoch: 'a', handed: [[1, first]] },
      { epoch: 'a', handed: [[1, second]] },
      { epoch: 'a', handed: [[2, first]] },
      {
        epoch: 'b',
        handed: [
          [1, first],
          [2, changed],
          [3, sealSigned(generateHomeKey(), { id: 'f4' })],
          [4, sealSigned(key, { id: 'f3' })],
        ],
      },
    )
    const gateway = await start({ config })
    await expect.poll(() => readRelayed(gateway)).toContain('f3')
    expect(await readRelayed(gateway)).toEqual(['f1', 'f3'])
  })
})

describe('a relay', () => {
  test('answers a handshake with the answer of the gateway, and with 503 while no gateway is connected', async () => {
    const relay = await startRelayProcess()
    const { config, toUrl, awaitHome } = toRelayed(relay.url)
    const gateway = await startInside({ config })
    await awaitHome()
    const answer = await fetch(`${toUrl('meta')}${toChallenge('1158201444')}`)
    expect([answer.status, await answer.text()]).toEqual([200, '1158201444'])
    expect((await fetch(`${toUrl('meta')}${toChallenge('1').replace(metaWord, 'wrong')}`)).status).not.toBe(200)
    await gateway.stop()
    await expect
      .poll(async () => {
        const away = await fetch(`${toUrl('meta')}${toChallenge('1')}`)
        return [away.status, away.headers.get('retry-after')]
      })
      .toEqual([503, '30'])
  })

  test('refuses an unknown address, a method that it does not pass on, and a body over a mebibyte', async () => {
    const relay = await startRelayProcess()
    const { config, toUrl, awaitHome, address } = toRelayed(relay.url)
    expect((await postSigned(toUrl('deploy'), { id: 'a1' })).status).toBe(404)
    const gateway = await startInside({ config })
    await awaitHome()
    await gateway.stop()
    expect((await fetch(toUrl('deploy'), { method: 'PROPFIND' })).status).toBe(405)
    const large = await fetch(toUrl('deploy'), { method: 'POST', body: 'x'.repeat(1024 ** 2 + 1) })
    expect(large.status).toBe(413)
    expect((await fetch(`${relay.url}/healthz`)).status).toBe(200)
    expect((await fetch(`${relay.url}/homes/${address}/requests?after=0&epoch=`)).status).toBe(401)
  })

  test('keeps no text of a request in its files and its log, and its folder is private', async () => {
    const relay = await startRelayProcess()
    const { config, toUrl, awaitHome, address } = toRelayed(relay.url)
    const gateway = await startInside({ config })
    await awaitHome()
    await gateway.stop()
    const marker = `marker-${randomBytes(12).toString('hex')}`
    const url = `${toUrl('deploy')}?token=${marker}`
    const headers = { 'x-secret': marker }
    expect((await fetch(url, { method: 'POST', headers, body: JSON.stringify({ id: marker }) })).status).toBe(202)
    expect(findInFiles(relay.dir, marker)).toEqual([])
    expect(relay.output()).not.toContain(marker)
    expect(relay.output()).toContain(address)
    const home = join(relay.dir, address)
    expect(statSync(home).mode & 0o777).toBe(0o700)
    expect(readdirSync(home).map((name) => statSync(join(home, name)).mode & 0o777)).toContain(0o600)
    expect(await relay.stop()).toBe(0)
    const again = await startRelayProcess({ dir: relay.dir })
    expect(findInFiles(again.dir, marker)).toEqual([])
    expect(readdirSync(home).filter((name) => name.endsWith('.sealed'))).toHaveLength(1)
  })

  test.skipIf(process.platform !== 'linux')(
    'has no body in its memory any more when the request is kept; heads stay until the memory is used again',
    async (context) => {
      const relay = await startRelayProcess()
      const { config, toUrl, awaitHome } = toRelayed(relay.url)
      const gateway = await startInside({ config })
      await awaitHome()
      await gateway.stop()
      const [inBody, inHead] = ['body', 'head'].map((name) => `${name}-${randomBytes(12).toString('hex')}`)
      for (const size of [0, 5_000, 200_000]) {
        const headers = { 'x-secret': inHead ?? '' }
        await fetch(toUrl('deploy'), { method: 'POST', headers, body: inBody + 'x'.repeat(size) })
      }
      const { pid = 0 } = relay.child
      expect(countInMemory(pid, relay.dir)).toBeGreaterThan(0)
      expect(countInMemory(pid, inBody ?? '')).toBe(0)
      count(context, { heads: countInMemory(pid, inHead ?? ''), bodies: 0 })
    },
  )

  test('a gateway whose relay is away shows the problem', async () => {
    const relay = await startRelayProcess()
    const { config } = toRelayed(relay.url)
    await relay.stop()
    const gateway = await startInside({ config })
    await expect.poll(() => readDegradedBy(gateway)).toEqual([expect.stringMatching(/does not answer/)])
  })
})

describe('hookloom dev --relay', () => {
  test('makes the key, adds the section, and prints a public URL that works', async () => {
    const relay = await startRelayProcess()
    const dir = makeConfigDir()
    const gateway = await startGateway({ dir, command: 'dev', args: ['--relay', relay.url] })
    await gateway.printed(/Public \S+/)
    const [, url = ''] = /Public (\S+)/.exec(gateway.output()) ?? []
    const headers = { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' }
    const wake = () => fetch(`${url}/wake`, { method: 'POST', headers, body: '{"text":"hello"}' })
    await expect.poll(async () => (await wake()).status).toBe(200)
    const [, key = ''] = /HOOKLOOM_RELAY_KEY=(\S+)/.exec(readFileSync(join(dir, '.env'), 'utf8')) ?? []
    expect(statSync(join(dir, '.env')).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).not.toContain(key)
    await gateway.stop()
    const again = await startGateway({ dir, command: 'dev', args: ['--relay', relay.url] })
    await again.printed(/Public \S+/)
    expect(again.output()).toContain(url)
    await again.stop()
    const check = await runCommand(['check'], { dir })
    expect(check.stdout).not.toContain('brings items that no mapping takes')
    const doctor = await runCommand(['doctor'], { dir })
    expect(doctor.stdout).toMatch(/relay.*127\.0\.0\.1:\d+ answers/)
  })

  test('refuses a URL that is not safe, and changes nothing', async () => {
    const dir = makeConfigDir()
    const before = readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')
    const { code, stderr } = await runCommand(['dev', '--relay', 'http://relay.example.org'], { dir })
    expect([code, stderr]).toEqual([64, expect.stringContaining('must be an https URL')])
    expect(readFileSync(join(dir, 'hookloom.jsonc'), 'utf8')).toBe(before)
    expect(existsSync(join(dir, '.env'))).toBe(false)
  })
})

test('hookloom relay says why it cannot start', async () => {
  const relay = await startRelayProcess()
  const port = new URL(relay.url).port
  const { code, stderr } = await runBuilt(['relay', '--port', port, '--dir', makeFolder()])
  expect([code, stderr]).toEqual([78, expect.stringContaining('EADDRINUSE')])
})
