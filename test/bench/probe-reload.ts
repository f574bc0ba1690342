// The time from a save until it is served, measured as an author notices it: over HTTP, with fixtures. Also the memory that each reload
// keeps.
import { cpSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { open, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createTransformRuntime } from '../../src/core/transforms/runtime.ts'
import { silentLog } from '../../src/base/log.ts'
import { startChild } from './child.ts'
import { type Client, createClient } from './client.ts'
import { toTransformsRoot } from './gateway.ts'
import type { ProbeOptions, RunningProbe } from './probe.ts'
import { token } from './run.ts'
import type { ServerOptions, ServerRequest } from './server.ts'
import { computeQuantile } from './statistics.ts'
import { reloadSeconds, reloadsWanted, saveStyles, savesOfStyle } from './figures.ts'

/** The time after which a save that is not served counts as lost. */
const patienceMs = 5000
/** The pause in which the watcher finishes a save, so that the next save counts separately. */
const restMs = 120
const warmReloads = 50
const megabyte = 1e6

/** A transform whose version a request can test: the answer is 204 for an odd version, and 200 for an even one. */
const renderModule = (version: number, remark = '') => `// version ${version}${remark}
export default ({ payload }) => {
  if (payload.probe && ${version} % 2 === 1) return null
  return { text: 'issue ' + payload.action }
}
`
/** The packages. In each, one file exports all others. */
const barrelPackages = ['date-fns', 'lodash-es'] as const
/** A transform module, which also imports one name from each package. */
const renderBarrelModule = (version: number) => `// version ${version}
import { formatISO } from 'date-fns'
import { chunk } from 'lodash-es'
export default ({ payload }) => {
  if (payload.probe && ${version} % 2 === 1) return null
  return { text: formatISO(0) + chunk([payload.action], 1).length }
}
`
const toExpectedStatus = (version: number) => (version % 2 === 1 ? 204 : 200)
const renderFixture = (action: string) =>
  JSON.stringify({
    request: { path: 'saved', payload: { action } },
    expect: { decision: 'accept', actions: [{ text: `issue ${action}` }] },
  })
const files = {
  'packages.ts': renderBarrelModule(0),
  'saved.ts': renderModule(0),
  'saved.fixtures/opened.json': renderFixture('opened'),
  'saved.fixtures/closed.json': renderFixture('closed'),
}

/** The ways in which editors and tools write a file. The pauses are part of a way, and are measured. */
const savers: Record<(typeof saveStyles)[number], (file: string, version: number) => Promise<void>> = {
  'in place': (file, version) => writeFile(file, renderModule(version)),
  'by rename': async (file, version) => {
    await writeFile(`${file}~`, renderModule(version))
    await rename(`${file}~`, file)
  },
  'in two chunks 15 ms apart': (file, version) => writeTwice(file, renderModule(version), 15),
  'in two chunks 40 ms apart': (file, version) => writeTwice(file, renderModule(version), 40),
  'twice within 15 ms': async (file, version) => {
    // the first of the two saves does not change the answer, so only the second one is measured
    await writeFile(file, renderModule(version - 1, ', again'))
    await pause(15)
    await writeFile(file, renderModule(version))
  },
  'by delete and re-create': async (file, version) => {
    await rm(file)
    await pause(5)
    await writeFile(file, renderModule(version))
  },
}

async function writeTwice(file: string, text: string, ms: number): Promise<void> {
  const handle = await open(file, 'w')
  const middle = Math.floor(text.length / 2)
  await handle.write(text.slice(0, middle))
  await pause(ms)
  await handle.write(text.slice(middle))
  await handle.close()
}

export async function createReloadProbe({ folder, built }: ProbeOptions): Promise<RunningProbe> {
  const dir = mkdtempSync(join(folder, 'store-'))
  const server: ServerOptions = { kind: 'sqlite', delayMs: 0, transforms: { files, limits: {} }, dir, built, token }
  // the packages are next to the module, where its author would install them
  for (const name of barrelPackages)
    cpSync(findPackageFolder(name), join(toTransformsRoot(dir), 'node_modules', name), { recursive: true })
  const args = [JSON.stringify(server)]
  const { first: port, child } = await startChild<ServerRequest, number>(join(folder, 'server.mjs'), args)
  return async () => {
    const client = createClient({ port, token })
    const saves = await measureSaves(join(toTransformsRoot(dir), 'saved.ts'), client)
    const packages = await measureBarrels(join(toTransformsRoot(dir), 'packages.ts'), client)
    await child.kill()
    return { ...saves, ...packages, ...(await measureHeap(mkdtempSync(join(folder, 'modules-')))) }
  }
}

async function measureSaves(file: string, client: Client): Promise<Record<string, number>> {
  const figures: Record<string, number> = {}
  const all: number[] = []
  let version = 0
  let lost = 0
  for (const style of saveStyles) {
    const times: number[] = []
    for (let save = 0; save < savesOfStyle; save += 1) {
      version += 1
      await savers[style](file, version)
      const took = await measureUntilServed(client, version)
      times.push(took)
      if (took === patienceMs) {
        lost += 1
        await saveAgain(file, client, version)
      }
      await pause(restMs)
    }
    figures[`${style} p50`] = computeQuantile(times, 0.5)
    figures[`${style} p99`] = computeQuantile(times, 0.99)
    all.push(...times)
  }
  return { ...figures, p50: computeQuantile(all, 0.5), p99: computeQuantile(all, 0.99), lost }
}

async function measureBarrels(file: string, client: Client): Promise<Record<string, number>> {
  const times: number[] = []
  for (let version = 1; version <= savesOfStyle; version += 1) {
    await writeFile(file, renderBarrelModule(version))
    times.push(await measureUntilServed(client, version, 'packages'))
    await pause(restMs)
  }
  // the first save after a start also reads the exports of the packages
  const [first = patienceMs, ...others] = times
  return {
    'packages first': first,
    'packages p50': computeQuantile(others, 0.5),
    'packages p99': computeQuantile(others, 0.99),
  }
}

function findPackageFolder(name: (typeof barrelPackages)[number]): string {
  const require = createRequire(import.meta.url)
  return dirname(
    name === 'date-fns' ? require.resolve('date-fns/package.json') : require.resolve('lodash-es/package.json'),
  )
}

/** The milliseconds from the end of the save until it is served. `patienceMs` if the save is lost. */
async function measureUntilServed(client: Client, version: number, hook = 'saved'): Promise<number> {
  const saved = performance.now()
  while (performance.now() - saved < patienceMs) {
    if ((await client.post(`/hooks/${hook}`, { probe: true, action: 'asked' })) === toExpectedStatus(version)) {
      return performance.now() - saved
    }
    await pause(1)
  }
  return patienceMs
}

/** Saves again, so that a lost save does not make the next saves look lost. */
async function saveAgain(file: string, client: Client, version: number): Promise<void> {
  await writeFile(file, renderModule(version, ', rescued'))
  await measureUntilServed(client, version)
}

/** The growth of the heap of the reloading thread. Garbage is collected before and after. */
async function measureHeap(folder: string): Promise<{ reloads: number; heap: number }> {
  const root = realpathSync(folder)
  const runtime = createTransformRuntime({ clock: Date.now, log: silentLog })
  const settings = { timeoutMs: 10_000, memoryMb: 128, workers: 1, env: {} }
  const reload = async (version: number) => {
    writeFileSync(join(root, 'saved.ts'), renderModule(version, `\nexport const version = ${version}`))
    const [transform] = (await runtime.load({ root, refs: [{ module: 'saved.ts' }], settings })).values()
    if (transform === undefined || transform.problem !== undefined) throw new Error('A reload failed.')
  }
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  const measureHeldHeap = () => {
    for (let pass = 0; pass < 3; pass += 1) collect()
    return process.memoryUsage().heapUsed / megabyte
  }
  for (let version = 0; version < warmReloads; version += 1) await reload(version)
  const before = measureHeldHeap()
  const until = performance.now() + reloadSeconds * 1000
  let reloads = 0
  while (reloads < reloadsWanted && performance.now() < until) {
    await reload(warmReloads + reloads)
    reloads += 1
  }
  const heap = measureHeldHeap() - before
  await runtime.close()
  return { reloads, heap }
}
