import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Gateway, startGateway } from '../e2e/gateway.ts'
import { createTraffic } from '../reload/traffic.ts'

const saves = 1000
const savesPerSecond = 20
const requestsPerSecond = 200
/** The number of saves before the measurement, in which code is compiled and caches are filled. */
const warmSaves = 100
/** The watcher counts two writes within this time as one save. */
const togetherMs = 5
const megabyte = 1024 * 1024

const renderEntry = (version: number) => `import { helper } from './helper.ts'
const version: number = ${version}
export default () => ({ message: 'x', sessionKey: \`hook:\${version}:\${helper}\`, deliver: false, wakeMode: 'next-heartbeat' })
`
const renderHelper = (version: number) => `export const helper: number = ${version}\n`

/** On request, a process collects garbage and prints the heap of its main thread. */
const tellHeap = `let count = 0
process.on('SIGUSR2', () => {
  for (let pass = 0; pass < 3; pass += 1) gc()
  console.error('heap ' + ++count + ' is ' + process.memoryUsage().heapUsed)
})`

test('a thousand saves of an entry and its helper, 20 a second under 200 requests a second: no request fails, sees two versions or goes back to an old one', async () => {
  const gateway = await startGateway({
    nodeArgs: ['--expose-gc', '--import', `data:text/javascript,${encodeURIComponent(tellHeap)}`],
    config: {
      hooks: {
        allowedSessionKeyPrefixes: ['hook:'],
        mappings: [{ match: { path: 'x' }, transform: { module: 'x.ts' } }],
      },
    },
    files: { 'hooks/transforms/x.ts': renderEntry(0), 'hooks/transforms/helper.ts': renderHelper(0) },
  })
  const root = join(gateway.dir, 'hooks', 'transforms')
  const traffic = createTraffic(gateway, 'x')
  const torn = new Set<number>()
  traffic.start(requestsPerSecond)
  let before = 0
  for (let version = 1; version <= saves; version += 1) {
    if (saveBoth(root, version) > togetherMs) torn.add(version)
    await pause(1000 / savesPerSecond)
    if (version === warmSaves) before = await readHeap(gateway, 1)
  }
  await waitForVersion(traffic, saves)
  const later = await Promise.all(Array.from({ length: 50 }, () => traffic.send()))
  await traffic.stop()
  const { answers } = traffic

  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  expect(answers.filter((it) => it.entry !== it.helper && !torn.has(Math.max(it.entry, it.helper)))).toEqual([])
  expect(answers.filter((it) => it.entry < it.newest)).toEqual([])
  expect(later.filter((it) => it.entry !== saves || it.helper !== saves)).toEqual([])
  // otherwise nothing was tested; the number of versions that go live depends on the machine
  expect(answers.length).toBeGreaterThan(1000)
  expect(new Set(answers.map((it) => it.entry)).size).toBeGreaterThan(20)
  expect((await readHeap(gateway, 2)) - before).toBeLessThan(20 * megabyte)
  const ready: unknown = await (await fetch(`${gateway.adminUrl}/readyz`)).json()
  expect(ready).toMatchObject({ degraded: false })
  expect(await gateway.stop()).toBe(0)
}, 300_000)

/** Saves both files. Returns the milliseconds between the two writes. */
function saveBoth(root: string, version: number): number {
  const files = [
    [join(root, 'x.ts'), renderEntry(version)],
    [join(root, 'helper.ts'), renderHelper(version)],
  ] as const
  for (const [file, text] of files) writeFileSync(`${file}~`, text)
  const begun = performance.now()
  for (const [file] of files) renameSync(`${file}~`, file)
  return performance.now() - begun
}

async function waitForVersion(traffic: ReturnType<typeof createTraffic>, version: number): Promise<void> {
  const until = performance.now() + 60_000
  while ((await traffic.send()).entry !== version) {
    if (performance.now() > until) throw new Error(`Version ${version} was saved and never answered.`)
  }
}

async function readHeap(gateway: Gateway, count: number): Promise<number> {
  gateway.child.kill('SIGUSR2')
  const line = new RegExp(`heap ${count} is (\\d+)`)
  await gateway.printed(line)
  return Number(line.exec(gateway.output())?.[1])
}
