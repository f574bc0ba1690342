// Makes a fixture of a transform from a stored delivery, without its secrets. Needs no gateway.
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runFixture } from '../live/fixtures.ts'
import { loadConfig } from '../loader/config.ts'
import { codeFolderMode, privateMode, writeFileAtomic } from '../loader/config-file.ts'
import { type Actual, parseFixture, toFixturesFolder, updateFixture } from '../loader/fixture-files.ts'
import type { Delivery } from '../model/delivery.ts'
import { exitCodes, Problem } from '../model/problem.ts'
import type { NamedMapping } from '../pipeline/compile.ts'
import { explain } from '../pipeline/explain.ts'
import type { createGeneration } from '../pipeline/generation.ts'
import type { DeliveryRecord } from '../store/records.ts'
import { createBench } from './checks/bench.ts'
import { type Context, toInvocation, withProgress } from './terminal/context.ts'
import { toCut, toFields } from './terminal/print.ts'
import { readKept } from './requests/kept.ts'
import type { Redacted } from './requests/redact.ts'

export type CaptureOptions = { id: string; name: string | undefined; module: string | undefined }

/** Throws `not-found`; `conflict` if the payload was not kept, if no transform takes it, or if the file exists. */
export async function capture(context: Context, options: CaptureOptions): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const { record, delivery, safe, mappings, generation } = await readKept(context, config, options.id)
  const { deliveryId: id } = record
  const bench = createBench(context)
  try {
    const asked = options.module ?? (await findModuleOf(record, delivery, { mappings, generation }))
    // the module of a mapping may not exist yet: its fixture may come first
    const loaded = await withProgress(context, 'Loading the transform', () => bench.load([asked]))
    const [module = asked] = loaded.modules
    const name = toFileName(options.name, delivery)
    const file = join(loaded.root, toFixturesFolder(module), name)
    if (existsSync(file)) {
      throw new Problem('conflict', `${file} exists already. Nothing was overwritten: --name gives it another name.`)
    }
    const plain = renderFixture(delivery, safe)
    const fixture = parseFixture(plain)
    if (typeof fixture === 'string') throw new Problem('conflict', `This delivery cannot become a fixture: ${fixture}.`)
    const outcome = await runFixture(loaded.parts, module, { kind: 'fixture', name, file, fixture })
    const actual = outcome.actual?.decision === 'park' ? undefined : outcome.actual
    await mkdir(dirname(file), { recursive: true, mode: codeFolderMode })
    await writeFileAtomic(file, actual === undefined ? plain : updateFixture(plain, actual), privateMode)
    const why = actual === undefined && !outcome.ok ? (outcome.diff[0] ?? 'it fails') : undefined
    tell(context, { file, module, deliveryId: id, removed: safe.removed, actual, why })
    return exitCodes.ok
  } finally {
    await bench.close()
  }
}

/** The module of its mapping. A delivery without a decision is matched now, which runs no code. */
async function findModuleOf(
  record: DeliveryRecord,
  delivery: Delivery,
  { mappings, generation }: { mappings: readonly NamedMapping[]; generation: ReturnType<typeof createGeneration> },
): Promise<string> {
  const known = mappings.find(({ id }) => id === record.mappingId)
  const id = known?.id ?? (await explain(generation, delivery, () => '')).decision.mappingId
  const module = mappings.find((mapping) => mapping.id === id)?.transform?.module
  if (module !== undefined) return module
  const whose = id === undefined ? 'No mapping takes this delivery' : `The mapping "${id}" has no transform`
  throw new Problem('conflict', `${whose}. Name the module of the fixture with --module <name>.`)
}

function toFileName(asked: string | undefined, { id, event, path }: Delivery): string {
  if (asked === undefined) {
    const word = (event ?? path).toLowerCase().replace(/[^a-z\d]+/g, '-')
    return `${word.replace(/^-|-$/g, '').slice(0, 60) || 'delivery'}-${id.slice(-8)}.json`
  }
  const name = asked.replace(/\.json$/, '')
  if (/^[A-Za-z\d][\w-]{0,99}$/.test(name)) return `${name}.json`
  throw new Problem('usage-invalid', '--name takes letters, digits, "-" and "_".')
}

function renderFixture({ method, path }: Delivery, { headers, query, payload }: Redacted): string {
  const request = {
    path,
    ...(method === 'POST' ? {} : { method }),
    headers,
    ...(Object.keys(query).length === 0 ? {} : { query }),
    payload,
  }
  return `${JSON.stringify({ request, expect: { decision: 'accept' } }, undefined, 2)}\n`
}

type Captured = {
  readonly file: string
  readonly module: string
  readonly deliveryId: string
  readonly removed: readonly string[]
  /** Undefined: the current code fails, and `why` has the reason. */
  readonly actual: Actual | undefined
  readonly why: string | undefined
}

function tell(context: Context, { file, module, deliveryId, removed, actual, why }: Captured): void {
  if (context.json) {
    const decision = actual?.decision ?? 'accept'
    return context.printJson({ file, module, deliveryId, removed, decision, note: why ?? null })
  }
  context.print(
    toFields([
      ['created', file],
      ['removed', removed.join(', ')],
      ['expects', actual?.decision ?? 'accept'],
    ]),
  )
  if (why !== undefined) {
    context.print(
      `\nThe current code fails on this request, so the fixture fails until the code is fixed:\n  ${toCut(why, 500)}`,
    )
  }
  context.print(`\nNext\n  ${toInvocation(context, ['test', module])}`)
}
