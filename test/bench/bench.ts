// `npm run bench`: the cost of a durable answer, as ratios between servers that are measured in turn on one machine. It is not a test.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describeOtherRows } from './battery/rows.ts'
import { compileChildren } from './child.ts'
import { type BenchOptions, parseOptions, usage } from './options.ts'
import { busyShare, describeMachine } from './machine.ts'
import { describePeers } from './peers.ts'
import { describeQueues } from './queues.ts'
import { summarizeDisk, describeMisses, renderReport } from './report.ts'
import { runProbes } from './probes.ts'
import { runSuites } from './run.ts'
import { buildProbeVerdicts, buildRows, buildVerdicts } from './verdicts.ts'

const root = resolve(import.meta.dirname, '../..')
const built = join(root, 'dist/index.js')

async function bench(options: BenchOptions): Promise<number> {
  if (!existsSync(built)) throw new Error('dist/index.js is missing. "npm run build" makes it.')
  // below the package, where children find its dependencies; a temporary folder may also be in memory, not on a disk
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'hookloom-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  await compileChildren(folder)
  const machine = describeMachine()
  const settings = {
    ...options,
    folder,
    built: pathToFileURL(built).href,
    onProgress: (text: string) => void process.stderr.write(`${text}\n`),
  }
  const { samples, disk, busy } = await runSuites(settings)
  const figures = await runProbes(settings)
  const report = {
    machine,
    busy: Math.max(...busy),
    disk: summarizeDisk(disk),
    verdicts: [...buildVerdicts(samples), ...buildProbeVerdicts(options.probes, figures)],
    notes: [
      ...(options.peers ? describePeers() : []),
      ...(options.probes.some(({ name }) => name === 'runs') ? describeQueues() : []),
      ...(options.probes.some(({ name }) => name === 'L1') ? describeOtherRows() : []),
    ],
    rows: buildRows(samples),
  }
  process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : `${renderReport(report)}\n`)
  const misses = describeMisses(report.verdicts)
  for (const miss of misses) process.stderr.write(`${miss}\n`)
  if (report.busy > busyShare) {
    process.stderr.write('Other programs were busy on this machine. Run the bench again when it is quiet.\n')
  }
  return misses.length === 0 ? 0 : 1
}

function readOptions(): BenchOptions | undefined {
  try {
    const options = parseOptions(process.argv.slice(2))
    if (options !== 'help') return options
    process.stdout.write(`${usage}\n`)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}\n`)
    process.exitCode = 64
  }
  return undefined
}

const options = readOptions()
if (options !== undefined) {
  try {
    process.exitCode = await bench(options)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}
