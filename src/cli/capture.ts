// Makes a fixture of a transform from a stored delivery, without its secrets. Needs no gateway.
import { capture as captureKept, findModuleOf } from '../gateway/replay/capture.ts'
import { loadConfig } from '../gateway/config/config.ts'
import { exitCodes } from '../core/model/problem.ts'
import type { CapturedFields } from '../model/api/replay.ts'
import { createBench } from './checks/bench.ts'
import { type Context, formatInvocation, withProgress } from './terminal/context.ts'
import { cutLine, renderFields } from './terminal/print.ts'
import { noteUnknownValues, readKept } from './requests/kept.ts'

type CaptureOptions = { id: string; name: string | undefined; module: string | undefined }

/** Throws `not-found`; `conflict` if the payload was not kept, if no transform takes it, or if the file exists. */
export async function capture(context: Context, options: CaptureOptions): Promise<number> {
  const { dir, env } = context
  const loadedConfig = loadConfig({ dir, env })
  const kept = await readKept(context, loadedConfig.config, options.id)
  noteUnknownValues(context, loadedConfig)
  const bench = createBench(context)
  try {
    const asked = options.module ?? (await findModuleOf(kept))
    // the module of a mapping may not exist yet, because its fixture can be made first
    const loaded = await withProgress(context, 'Loading the transform', () => bench.load([asked]))
    const { root, parts, modules, env: own } = loaded
    const [module = asked] = modules
    const captured = await captureKept(kept, { name: options.name, module, root, parts, env: own })
    if (context.json) context.printJson(captured)
    else print(context, captured)
    return exitCodes.ok
  } finally {
    await bench.close()
  }
}

function print(context: Context, { file, module, removed, decision, note }: CapturedFields): void {
  context.print(
    renderFields([
      ['created', file],
      ['removed', removed.join(', ')],
      ['expects', decision],
    ]),
  )
  if (note !== null) {
    context.print(
      `\nThe current code fails on this request, so the fixture fails until the code is fixed:\n  ${cutLine(note, 500)}`,
    )
  }
  context.print(`\nNext\n  ${formatInvocation(context, ['test', module])}`)
}
