// The output of `hookloom list` in this process.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { list, type ListOptions } from '../../../src/cli/list.ts'
import { createContext } from '../../../src/cli/terminal/context.ts'
import { createSqliteStore } from '../../../src/index.ts'
import { newDelivery, newJob, newWake } from '../../contract/stage.ts'
import { makeConfigDir, writeFiles } from '../../e2e/gateway.ts'

async function runList(
  dir: string,
  options: Omit<ListOptions, 'limit'>,
  onPrint: (text: string) => void,
  isTerminal = true,
) {
  const input = { env: {}, script: 'hookloom', stdin: Readable.from([]), isTerminal }
  const io = { ...input, writeOut: onPrint, writeError: () => {} }
  await list(createContext(io, { configDir: dir }), { limit: 10, ...options })
}

test('hookloom list --dead shows when a run failed for the last time, and not when its request came', async () => {
  const dir = makeConfigDir()
  let now = Date.parse('2026-01-02T03:04:05Z')
  const store = createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock: () => now })
  await store.append(newDelivery({ at: now, jobs: [newJob()] }))
  now += 60_000
  const [claimed] = await store.claim({ limit: 1, leaseMs: 60_000 })
  if (claimed === undefined) throw new Error('nothing to claim')
  now += 60_000
  await store.report(claimed, { outcome: { kind: 'dead', error: 'refused', counted: true } })
  await store.close()
  let text = ''
  await runList(dir, { dead: true }, (part) => (text += part))
  expect(text).toMatch(/^2026-01-02 03:06:05Z/m)
})

test('hookloom list shows that the runs of an accepted delivery are dead or wait', async () => {
  const dir = makeConfigDir()
  const store = createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock: Date.now })
  await store.append(newDelivery({ at: Date.now(), jobs: [newJob()] }))
  const [claimed] = await store.claim({ limit: 1, leaseMs: 60_000 })
  if (claimed === undefined) throw new Error('nothing to claim')
  await store.report(claimed, { outcome: { kind: 'dead', error: 'refused', counted: true } })
  await store.append(newDelivery({ at: Date.now(), jobs: [newJob(), newJob()] }))
  await store.close()
  let text = ''
  await runList(dir, {}, (part) => (text += part))
  expect(text).toMatch(/accepted +dead /)
  expect(text).toMatch(/accepted +2 waiting /)
})

test('a table is cut for a terminal only, so a program that reads a pipe gets every text as it is', async () => {
  const dir = makeConfigDir()
  const store = createSqliteStore({ file: join(dir, 'state/hookloom.db'), clock: Date.now })
  const message = 'm'.repeat(150)
  const wake = newWake(message)
  await store.append(newDelivery({ at: Date.now(), jobs: [wake] }))
  await store.close()
  const read = async (isTerminal: boolean) => {
    let text = ''
    await runList(dir, {}, (part) => (text += part), isTerminal)
    return text
  }
  expect(await read(false)).toContain(message)
  expect(await read(true)).not.toContain(message)
})

test('hookloom list --follow opens the stream before it reads the store, so no change is missed between them', async () => {
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(String(request.url))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('event: status\ndata: {}\n\n')
    // the stream ends with an invalid `deliveries` event, so that the command fails and the test ends
    setTimeout(() => response.end('event: deliveries\ndata: {}\n\n'), 500)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const dir = makeConfigDir()
  writeFiles(dir, { 'state/gateway.json': JSON.stringify({ pid: process.pid, url, adminUrl: url }) })
  await expect(runList(dir, { follow: true }, (text) => seen.push(text))).rejects.toThrow('of another version')
  expect(seen).toEqual(['/api/stream', 'No delivery yet.\n'])
})
