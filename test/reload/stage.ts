// A config directory whose saves go live, and deliveries whose answers show which version is live. Tests await events, not the clock.
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createReload } from '../../src/gateway/reload/reload.ts'
import type { Live, SwapListener } from '../../src/gateway/reload/live-types.ts'
import { createTransformRuntime } from '../../src/core/transforms/runtime.ts'
import type { JsonValue } from '../../src/base/json.ts'
import { type Log, silentLog } from '../../src/base/log.ts'
import type { Decision } from '../../src/core/mapping/decision.ts'
import { decide } from '../../src/core/mapping/pipeline.ts'
import { buildDelivery } from '../../src/core/mapping/delivery.ts'

type Line = { readonly level: string; readonly text: string; readonly frame: string; readonly problems: unknown }

export type Stage = {
  readonly dir: string
  readonly root: string
  readonly live: Live
  readonly lines: readonly Line[]
  /** Calls the listener at each swap from now on. */
  onSwap(listener: SwapListener): void
  write(files: Readonly<Record<string, string>>): Promise<void>
  /** Decides a delivery of this hook with the live generation. */
  decide(hook: string, payload?: JsonValue): Promise<Decision>
  /** The message of the decision, or the kind of the decision if it has no message. */
  answer(hook: string, payload?: JsonValue): Promise<string>
  /** Resolves when the hook answers with this message. Asks once in each turn of the event loop. */
  waitForAnswer(hook: string, message: string): Promise<void>
  /** Resolves with the first log line that matches, including lines that were logged before. */
  waitForLine(pattern: RegExp): Promise<Line>
}

export const baseConfig = {
  hooks: {
    enabled: true,
    token: 'hook-secret-of-the-stage',
    mappings: [{ match: { path: 'x' }, transform: { module: 'x.ts' } }],
  },
}

/** The code of a module that answers with this text. */
export const says = (text: string) => `export default () => ({ message: ${JSON.stringify(text)} })\n`

export async function createStage(
  files: Readonly<Record<string, string>>,
  {
    config = baseConfig,
    watch = true,
    parkedFor = async () => 0,
  }: { config?: object | string; watch?: boolean; parkedFor?: (module: string) => Promise<number> } = {},
): Promise<Stage> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'hookloom-reload-')))
  const root = join(dir, 'hooks', 'transforms')
  const write = (texts: Readonly<Record<string, string>>) => writeAll(root, texts)
  await writeFile(join(dir, 'hookloom.jsonc'), typeof config === 'string' ? config : JSON.stringify(config))
  await write(files)
  const lines: Line[] = []
  const listeners = new Set<() => void>()
  const swapListeners: SwapListener[] = [(next) => runtime.serve(next.transforms)]
  const runtime = createTransformRuntime({ clock: Date.now, log: silentLog })
  const live = createReload({
    meter: () => {},
    parkedFor,
    dir,
    env: {},
    clock: Date.now,
    log: createLog((line) => {
      lines.push(line)
      for (const listener of listeners) listener()
    }),
    async load({ settings, ...wanted }) {
      const transforms = await runtime.load({ ...wanted, settings: { ...settings, workers: 1 } })
      return { transforms, inputs: runtime.inputs() }
    },
    onSwap: (next, swap) => {
      for (const listener of swapListeners) listener(next, swap)
    },
  })
  onTestFinished(async () => {
    await live.close()
    await runtime.close()
    await rm(dir, { recursive: true, force: true })
  })
  await live.start()
  runtime.serve(live.current().transforms)
  if (watch) await live.watch()

  const stage: Stage = {
    dir,
    root,
    live,
    lines,
    onSwap: (listener) => void swapListeners.push(listener),
    write,
    decide: (hook, payload = {}) => decideNow(live, hook, payload),
    answer: async (hook, payload) => toAnswer(await stage.decide(hook, payload)),
    async waitForAnswer(hook, message) {
      const until = performance.now() + 60_000
      for (let answer = ''; answer !== message;) {
        if (performance.now() > until) throw new Error(`${hook} still answers ${answer}, never ${message}`)
        await new Promise((resolve) => setImmediate(resolve))
        answer = await stage.answer(hook)
      }
    },
    waitForLine: (pattern) =>
      new Promise((found) => {
        const checkLines = () => {
          const line = lines.find(({ text, frame }) => pattern.test(`${text}\n${frame}`))
          if (line === undefined) return
          listeners.delete(checkLines)
          found(line)
        }
        listeners.add(checkLines)
        checkLines()
      }),
  }
  return stage
}

async function writeAll(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
}

let ids = 0

async function decideNow(live: Live, path: string, payload: JsonValue): Promise<Decision> {
  const generation = live.current()
  const hook = generation.findHook(path)
  const release = live.acquire(generation)
  const admitted = { token: true, signedFor: [] }
  const headers = { 'content-type': 'application/json' }
  const head = { method: 'POST', url: `/hooks/${path}`, path, headers, query: {}, verifiedBy: undefined, admitted }
  const body = Buffer.from(JSON.stringify(payload))
  const delivery = buildDelivery(head, body, { hook, id: `d-${++ids}`, receivedAt: Date.now() })
  try {
    return await decide(delivery, { hook, newId: () => `id-${++ids}` })
  } finally {
    release()
  }
}

function toAnswer(decision: Decision): string {
  if (decision.kind === 'park') return `park: ${decision.problem.message}`
  if (decision.kind !== 'accept') return decision.kind
  const [planned] = decision.actions
  return planned?.kind === 'agent' ? planned.action.message : 'wake'
}

function createLog(add: (line: Line) => void): Log {
  const at = (level: string) => (fields: object, text: string) =>
    add({
      level,
      text,
      frame: 'frame' in fields ? String(fields.frame) : '',
      problems: 'problems' in fields ? fields.problems : [],
    })
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
