// A transform runtime of one test, over modules that the test writes.
import { onTestFinished } from 'vitest'
import { createTransformRuntime } from '../../../../src/core/transforms/runtime.ts'
import type { RuntimeOptions, TransformRuntime } from '../../../../src/core/transforms/runtime.ts'
import type { JsonValue } from '../../../../src/base/json.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { toTransformKey } from '../../../../src/core/model/transform.ts'
import type { Transform, TransformOutcome } from '../../../../src/core/model/transform.ts'
import { createConfigDir, toCall, writeFiles } from './stage.ts'

export type Stage = {
  readonly root: string
  readonly runtime: TransformRuntime
  write(files: Record<string, string>): Promise<void>
  /** Loads the modules and returns their transforms by module. */
  load(...modules: string[]): Promise<Record<string, Transform>>
  /** The settings of the next load. */
  readonly settings: { timeoutMs: number; memoryMb: number; workers: number; env: Readonly<Record<string, string>> }
}

/** Defaults: two workers, a minute, which also a busy machine does not need, and 128 MB. Everything ends with the test. */
export async function createStage(options: Partial<RuntimeOptions> & Partial<Stage['settings']> = {}): Promise<Stage> {
  const { timeoutMs = 60_000, memoryMb = 128, workers = 2, env = {}, ...rest } = options
  const settings = { timeoutMs, memoryMb, workers, env }
  const { root } = await createConfigDir()
  const runtime = createTransformRuntime({ clock: Date.now, log: silentLog, ...rest })
  onTestFinished(() => runtime.close())
  return {
    root,
    runtime,
    settings,
    write: (files) => writeFiles(root, files),
    load: async (...modules) => {
      const loaded = await runtime.load({ root, refs: modules.map((module) => ({ module })), settings })
      return Object.fromEntries(
        modules.map((module) => [module, requireLoaded(loaded.get(toTransformKey({ module })))]),
      )
    },
  }
}

export function requireLoaded(transform: Transform | undefined): Transform {
  if (transform === undefined) throw new Error('nothing was loaded')
  return transform
}

export function run(transform: Transform | undefined, payload: JsonValue = {}): Promise<TransformOutcome> {
  return requireLoaded(transform).run(toCall(payload))
}

/** The value of a call, or the sentence of its problem. */
export async function readResult(transform: Transform | undefined, payload: JsonValue = {}): Promise<unknown> {
  const outcome = await run(transform, payload)
  return outcome.kind === 'returned' ? outcome.value : outcome.problem.detail
}
