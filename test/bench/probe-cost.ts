// The cost of one wake, one signed delivery of 10 kB, one run with a reply and one save, in system calls, commits, pages and bytes.
import { createHmac } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startChild } from './child.ts'
import { countCalls, measureWal, waitUntilQuiet, whyNoCalls } from './cost.ts'
import { createEventBody } from './events.ts'
import { costlyWork } from './figures.ts'
import { toTransformsRoot } from './gateway.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { token } from './run.ts'
import type { ServerOptions, ServerRequest } from './server.ts'
import { computeMedian } from './statistics.ts'

type Work = { readonly run: () => Promise<unknown>; readonly times: number }

const renderModule = (version: number) => `export default () => ({ text: 'version ${version}' })\n`
/** The time after which a save is live. */
const liveMs = 1_000

export function createCostProbe({ folder, built }: Pick<ProbeOptions, 'folder' | 'built'>): RunningProbe {
  return async () => {
    const dir = mkdtempSync(join(folder, 'store-'))
    const transforms = { files: { 'saved.ts': renderModule(0) }, limits: {} }
    const server: ServerOptions = { kind: 'sqlite', delayMs: 0, transforms, isCounted: true, dir, built, token }
    const { first: port, child } = await startChild<ServerRequest, number>(join(folder, 'server.mjs'), [
      JSON.stringify(server),
    ])
    const wal = join(dir, 'state/hookloom.db-wal')
    const post = createPost(port)
    let version = 0
    const works: Record<(typeof costlyWork)[number], Work> = {
      wake: { run: () => post('bench', 1_000), times: 60 },
      signed: { run: () => post('bench-github', 10_000), times: 60 },
      run: { run: () => post('bench-agent', 1_000).then(() => waitUntilQuiet(wal)), times: 20 },
      save: {
        run: () =>
          writeFile(join(toTransformsRoot(dir), 'saved.ts'), renderModule((version += 1))).then(() => pause(liveMs)),
        times: 3,
      },
    }
    try {
      // warms up: tables grow and code is compiled
      for (let count = 0; count < 30; count += 1) await works.wake.run()
      await works.run.run()
      const figures: Record<string, number> = {}
      for (const name of costlyWork) {
        for (const [key, value] of Object.entries(await measure(works[name]))) figures[`${name} ${key}`] = value
      }
      return figures
    } finally {
      await child.kill()
    }

    async function measure({ run, times }: Work): Promise<Record<string, number>> {
      const written: Awaited<ReturnType<typeof measureWal>>[] = []
      const allocated: number[] = []
      for (let count = 0; count < times; count += 1) {
        const before = await child.ask('heap')
        written.push(await measureWal(wal, run))
        allocated.push((await child.ask('heap')) - before)
      }
      const repeatWork = async () => {
        for (let count = 0; count < times; count += 1) await run()
      }
      const calls =
        whyNoCalls === undefined ? await countCalls(child.pid, join(folder, 'calls.txt'), repeatWork) : undefined
      return {
        calls: calls === undefined ? Number.NaN : Object.values(calls).reduce((all, each) => all + each, 0) / times,
        commits: computeMedian(written.map(({ commits }) => commits)),
        pages: computeMedian(written.map(({ pages }) => pages)),
        'wal bytes': written.reduce((all, { bytes }) => all + bytes, 0) / times,
        // a garbage collection during the work would reduce the value
        allocated: computeMedian(allocated),
      }
    }
  }
}

/** Sends requests on connections that stay open. All bodies differ. */
function createPost(port: number) {
  const agent = new Agent({ keepAlive: true })
  let serial = 0
  return (hook: string, size: number): Promise<void> => {
    const body = createEventBody(size, 1)
    body.renumber((serial += 1))
    const signature = createHmac('sha256', token).update(body.bytes).digest('hex')
    const proof =
      hook === 'bench-github'
        ? {
            'x-github-event': 'issues',
            'x-github-delivery': `d-${serial}`,
            'x-hub-signature-256': `sha256=${signature}`,
          }
        : { authorization: `Bearer ${token}` }
    const headers = { 'content-type': 'application/json', 'content-length': body.bytes.length, ...proof }
    return new Promise((resolve, reject) => {
      const sent = request(
        { host: '127.0.0.1', port, path: `/hooks/${hook}`, method: 'POST', agent, headers },
        (answer) => {
          answer.resume()
          answer.on('end', () =>
            answer.statusCode === 200 ? resolve() : reject(new Error(`${hook} answered ${answer.statusCode}.`)),
          )
        },
      )
      sent.on('error', reject)
      sent.end(body.bytes)
    })
  }
}
