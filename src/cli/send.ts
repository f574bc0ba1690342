// Posts to the running gateway as a sender would: a payload with the hook token, or a preset's sample with its signature.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { loadConfig } from '../loader/config.ts'
import type { Config } from '../model/config.ts'
import { exitCodes, Problem } from '../model/problem.ts'
import type { Context } from './context.ts'
import { ask, toAddress, toJson, toRefusal } from './gateway.ts'
import { readInput } from './input.ts'
import { toCut } from './print.ts'
import { withProgress } from './progress.ts'
import { findPreset, toSample } from './sample.ts'

/** `file`: a file; where there is none, and the hook is a preset's name, a fixture or an event of that preset. */
export type SendOptions = { hook: string; file: string; headers: readonly string[] }

type Outgoing = { readonly path: string; readonly headers: Readonly<Record<string, string>>; readonly body: string }

export async function send(context: Context, options: SendOptions): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const { path, headers, body } = toOutgoing(config, options)
  const { url } = toAddress(dir, config)
  const { status, text, isReplay } = await withProgress('Waiting for the answer', () =>
    ask(`${url}/${path}`, { method: 'POST', headers, body }),
  )
  const answer = toCut(text, 4_000)
  if (context.json) context.printJson({ status, body: toJson(text) ?? null, replay: isReplay })
  else context.print([String(status), answer, isReplay ? '(a replay of the first answer)' : ''].join(' ').trim())
  if (status < 400) return exitCodes.ok
  return exitCodes[toRefusal(status, text).kind]
}

function toOutgoing(config: Config, { hook, file, headers }: SendOptions): Outgoing {
  const preset = existsSync(file) ? undefined : findPreset(hook)
  if (preset === undefined) {
    const input = readInput(file, headers)
    const path = hook.replace(/^\/+|\/+$/g, '')
    return { path, headers: { ...input.headers, authorization: toBearer(config) }, body: input.body }
  }
  const sample = toSample(config, preset, { word: file, now: Date.now(), headers })
  // a sample has the delivery id of its file: without a key of its own, only the first one would run
  const key = { 'idempotency-key': randomUUID(), ...sample.headers }
  return { ...sample, headers: sample.isSigned ? key : { ...key, authorization: toBearer(config) } }
}

function toBearer({ hooks }: Config): string {
  if (hooks.token === undefined) {
    throw new Problem('config-invalid', 'hooks.token is not set, so no gateway takes a hook here.')
  }
  return `Bearer ${hooks.token}`
}
