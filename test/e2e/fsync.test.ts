// The write-ahead log is flushed to the disk before the 200 is written to the socket. The test reads the system calls.
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readVerdict } from './answers.ts'
import { type Gateway, makeFolder, startGateway } from './gateway.ts'
import { post } from './wire.ts'

const requests = 20
const strace = 'strace'
const hasStrace = spawnSync(strace, ['-V'], { stdio: 'ignore' }).status === 0

test.skipIf(!hasStrace)('the write-ahead log is flushed between a request and its 200 (needs strace)', async () => {
  const gateway = await startGateway()
  const calls = await traceCalls(gateway, async () => {
    for (let n = 0; n < requests; n++) {
      const reply = await post(Number(new URL(gateway.url).port), '/hooks/wake', { text: `traced ${n}` })
      expect(readVerdict(reply)).toBe('accepted')
    }
  })
  await gateway.stop()
  const turns = toTurns(calls)
  expect(turns).toHaveLength(requests)
  for (const turn of turns) expect(turn).toEqual(['request', 'flushed', 'answer'])
})

/** Returns the lines that strace prints while `meanwhile` runs. */
async function traceCalls(gateway: Gateway, meanwhile: () => Promise<void>): Promise<string[]> {
  const file = join(makeFolder(), 'calls')
  const filter = 'trace=read,write,writev,recvfrom,sendto,sendmsg,fsync,fdatasync'
  const tracer = spawn(strace, ['-f', '-y', '-s', '40', '-e', filter, '-o', file, '-p', String(gateway.child.pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = new Promise((resolve) => tracer.once('close', resolve))
  await new Promise<void>((resolve, reject) => {
    // strace prints this when it has attached every thread
    tracer.stderr.setEncoding('utf8').on('data', (chunk: string) => /attached/.test(chunk) && resolve())
    void ended.then(() => reject(new Error('strace could not attach')))
  })
  await meanwhile()
  tracer.kill('SIGINT')
  await ended
  return readFileSync(file, 'utf8').split('\n')
}

/** The events of each request, in order, each kind once. */
function toTurns(calls: readonly string[]): string[][] {
  const turns: string[][] = []
  /** Threads that have begun a flush of the log and not ended it. */
  const flushing = new Set<string>()
  for (const call of calls) {
    const thread = /^\d+/.exec(call)?.[0] ?? ''
    if (call.includes('"POST /hooks/wake')) turns.push(['request'])
    if (/f(data)?sync\(\d+<[^>]*-wal>/.test(call)) flushing.add(thread)
    const isOver = /f(data)?sync(\(| resumed).*= 0$/.test(call)
    if (isOver && flushing.delete(thread)) note(turns, 'flushed')
    if (call.includes('"HTTP/1.1 200 OK')) note(turns, 'answer')
  }
  return turns
}

function note(turns: readonly string[][], what: string): void {
  const turn = turns.at(-1)
  if (turn !== undefined && !turn.includes(what)) turn.push(what)
}
