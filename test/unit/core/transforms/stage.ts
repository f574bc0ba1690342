// A transforms directory for one test, and functions to load and call its modules.
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Transform, TransformCall, TransformOutcome } from '../../../../src/core/model/transform.ts'
import type { JsonValue } from '../../../../src/base/json.ts'
import { toTransformKey } from '../../../../src/core/model/transform.ts'
import { loadTransforms } from '../../../inline-transforms.ts'
import { onTestFinished } from 'vitest'

/** The real paths of a config directory with an empty `hooks/transforms`. It is removed when the test ends. */
export async function createConfigDir(): Promise<{ configDir: string; root: string }> {
  const configDir = await realpath(await mkdtemp(join(tmpdir(), 'hookloom-loader-')))
  onTestFinished(() => rm(configDir, { recursive: true, force: true }))
  const root = join(configDir, 'hooks', 'transforms')
  await mkdir(root, { recursive: true })
  return { configDir, root }
}

/** Writes texts by their path below the root. */
export async function writeFiles(root: string, files: Record<string, string | Uint8Array>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
}

export async function load(root: string, module: string, name?: string, timeoutMs = 5000): Promise<Transform> {
  const ref = name === undefined ? { module } : { module, export: name }
  const transform = (await loadTransforms({ root, refs: [ref], timeoutMs })).get(toTransformKey(ref))
  if (transform === undefined) throw new Error(`nothing was loaded for ${module}`)
  return transform
}

export function toCall(payload: JsonValue): TransformCall {
  return {
    head: {
      headers: { 'content-type': 'application/json' },
      query: {},
      url: '/hooks/test',
      path: 'test',
      method: 'POST',
      source: undefined,
      event: undefined,
      receivedAt: 1_700_000_000_000,
      deliveryId: 'd-1',
    },
    body: new TextEncoder().encode(JSON.stringify(payload)),
    syntax: 'json',
  }
}

/** Writes one module, loads it and calls it. */
export async function runModule(
  text: string,
  { payload = {}, timeoutMs = 5000 }: { payload?: JsonValue; timeoutMs?: number } = {},
): Promise<TransformOutcome> {
  const { root } = await createConfigDir()
  await writeFiles(root, { 'x.ts': text })
  const transform = await load(root, 'x.ts', undefined, timeoutMs)
  if (transform.problem !== undefined) throw new Error(`${transform.problem.detail}\n${transform.problem.frame}`)
  return transform.run(toCall(payload))
}
