// Finds the save that changed the outcome of a delivery: runs the request of the delivery through remembered saves. Stores and sends
// nothing.
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import colors from 'picocolors'
import { newId } from '../base/id.ts'
import { formatQuantity } from '../base/text.ts'
import { envFile, readConfigText } from '../gateway/config/text.ts'
import { parseEnv } from '../gateway/config/env.ts'
import { toIsoTime } from '../gateway/deliveries/records.ts'
import { Problem } from '../core/model/problem.ts'
import type { Generation } from '../gateway/generation/generation.ts'
import { createGeneration } from '../gateway/generation/generation.ts'
import { compare, type OutcomeComparison } from '../gateway/replay/comparison.ts'
import type { Outcome } from '../gateway/replay/outcome.ts'
import { matchMappings, pauseBetweenRuns, runAll } from '../gateway/replay/replay.ts'
import { readSaves, type Save } from '../gateway/reload/saves.ts'
import type { KeptDelivery } from '../store/records.ts'
import { createBench } from './checks/bench.ts'
import { readDelivery } from './requests/kept.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { renderDiff } from './terminal/diff.ts'
import { cutLine, formatTime } from './terminal/print.ts'

/** A save, and the outcomes of the delivery in two runs with the code of that save. */
type SaveOutcomes = { readonly generation: Generation; readonly outcomes: readonly [Outcome, Outcome] }

type Found = { readonly before: Save; readonly save: Save; readonly compared: OutcomeComparison }

export async function bisect(context: Context, given: string): Promise<number> {
  const kept = await readKeptDelivery(context, given)
  const saves = await readSaves(context.dir)
  // the save that was live when the delivery came, and all later saves
  const first = Math.max(
    0,
    saves.findLastIndex(({ at }) => at <= kept.receivedAt),
  )
  const wanted = saves.slice(first)
  if (wanted.length === 0)
    throw new Problem('conflict', 'No save is remembered. A running gateway remembers each save that goes live.')
  const isWhole = (wanted[0]?.at ?? 0) <= kept.receivedAt
  const { found, looked } = await withProgress(context, 'Looking for the save', () => search(context, kept, wanted))
  print(context, kept, { found, isWhole, looked, remembered: wanted.length, since: wanted[0]?.at ?? 0 })
  return 0
}

const signals = ['SIGINT', 'SIGTERM'] as const

/** A binary search for two neighbouring saves with different outcomes. Finds nothing if the oldest and the newest save have the same outcome. */
async function search(context: Context, kept: KeptDelivery, saves: readonly Save[]) {
  const stop = (signal: NodeJS.Signals) => {
    runner.close()
    process.exit(signal === 'SIGINT' ? 130 : 143)
  }
  // before the runner makes its folder: without a handler, a signal would leave the folder behind
  for (const signal of signals) process.on(signal, stop)
  const runner = createSaveRunner(context, kept)
  try {
    const runAt = (index: number): Promise<SaveOutcomes> => {
      const save = saves[index]
      if (save === undefined) throw new Error('there is a save at each index')
      return runner.run(save)
    }
    let [low, high] = [0, saves.length - 1]
    const oldest = await runAt(low)
    let compared = compareWith(oldest, await runAt(high))
    let looked = Math.min(2, saves.length)
    if (compared.class === 'same') return { found: undefined, looked }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      const result = compareWith(oldest, await runAt(middle))
      looked += 1
      if (result.class === 'same') low = middle
      else [high, compared] = [middle, result]
    }
    const [before, save] = [saves[low], saves[high]]
    return { found: before && save && { before, save, compared }, looked }
  } finally {
    for (const signal of signals) process.off(signal, stop)
    runner.close()
  }
}

function compareWith(oldest: SaveOutcomes, later: SaveOutcomes): OutcomeComparison {
  const findAfterId = matchMappings(oldest.generation, later.generation)
  return compare({ before: oldest.outcomes[0], after: later.outcomes, recorded: undefined }, findAfterId)
}

/** Runs the request with the code of a save. Writes the files of each save to a new folder, with the packages and variables of the config
 * directory. */
function createSaveRunner(context: Context, kept: KeptDelivery) {
  const folder = mkdtempSync(join(tmpdir(), 'hookloom-bisect-'))
  const env = { ...parseEnv(readConfigText(context.dir, envFile) ?? '').values, ...context.env }
  const packages = 'hooks/transforms/node_modules'
  if (existsSync(join(context.dir, packages))) {
    cpSync(join(context.dir, packages), join(folder, 'packages'), { recursive: true, dereference: true })
  }
  let count = 0

  async function runSave({ files }: Save): Promise<SaveOutcomes> {
    count += 1
    const dir = join(folder, String(count))
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, name)), { recursive: true, mode: 0o700 })
      writeFileSync(join(dir, name), text, { mode: 0o600 })
    }
    if (existsSync(join(folder, 'packages'))) cpSync(join(folder, 'packages'), join(dir, packages), { recursive: true })
    // the variables that an old save reads may be gone
    const bench = createBench({ dir, env, isWithoutSecrets: true })
    try {
      const generation = createGeneration((await bench.load([])).parts)
      const run = async () => (await runAll(generation, [kept], { newId })).get(kept.deliveryId)
      const one = await run()
      await pauseBetweenRuns()
      const other = await run()
      if (one === undefined || other === undefined) throw new Error('the request is kept')
      return { generation, outcomes: [one, other] }
    } finally {
      await bench.close()
    }
  }
  return { run: runSave, close: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Throws `not-found`, and `conflict` if the request of the delivery is not kept. */
async function readKeptDelivery(context: Context, given: string): Promise<KeptDelivery> {
  const found = await readDelivery(context, given)
  if (found.request === undefined) {
    throw new Problem(
      'conflict',
      'The request of this delivery is not kept. "retain": 100 in hooks keeps the newest requests.',
    )
  }
  return found
}

type Result = {
  readonly found: Found | undefined
  /** Whether the save that was live when the delivery came is remembered. */
  readonly isWhole: boolean
  readonly since: number
  readonly looked: number
  readonly remembered: number
}

function print(context: Context, kept: KeptDelivery, { found, isWhole, since, looked, remembered }: Result): void {
  const { deliveryId } = kept
  const files = found === undefined ? [] : listChangedFiles(found)
  if (context.json) {
    const save = found && { at: toIsoTime(found.save.at), files }
    const change = found && { class: found.compared.class, changes: found.compared.changes }
    return context.printJson({ deliveryId, save: save ?? null, ...change, since: toIsoTime(since), looked, remembered })
  }
  if (!isWhole) context.note(`The oldest remembered save is of ${formatTime(since)}, after the delivery came.`)
  const count = `Looked at ${looked} of ${formatQuantity(remembered, 'remembered save')}.`
  if (found === undefined) return context.print(`No save since ${formatTime(since)} changed the outcome. ${count}`)
  context.print(`The outcome changed with the save of ${colors.bold(formatTime(found.save.at))}.\n`)
  for (const { name, what } of files) context.print(`  ${what.padEnd(7)}  ${cutLine(name, 200)}`)
  context.print(`\n${colors.bold(found.compared.class)}  ${deliveryId}  ${cutLine(kept.hook, 60)}`)
  for (const { path, before, after } of found.compared.changes) {
    context.print([`  ${path}`, ...renderDiff(before, after).map((line) => `    ${line}`)].join('\n'))
  }
  context.print(`\n${count}`)
}

function listChangedFiles({ before, save }: Found): { name: string; what: 'added' | 'changed' | 'removed' }[] {
  const names = [...new Set([...Object.keys(before.files), ...Object.keys(save.files)])].toSorted()
  return names.flatMap((name) => {
    const [old, now] = [before.files[name], save.files[name]]
    if (old === now) return []
    return { name, what: old === undefined ? 'added' : now === undefined ? 'removed' : 'changed' }
  })
}
