// Posts a payload to the running gateway as a sender would, with the hook token of the configuration.
import { loadConfig } from '../loader/config.ts'
import { exitCodes, Problem } from '../model/problem.ts'
import type { Context } from './context.ts'
import { ask, toAddress, toJson, toRefusal } from './gateway.ts'
import { readInput } from './input.ts'
import { toCut } from './print.ts'
import { withProgress } from './progress.ts'

export type SendOptions = { hook: string; file: string; headers: readonly string[] }

export async function send(context: Context, { hook, file, headers }: SendOptions): Promise<number> {
  const { dir, env } = context
  const { config } = loadConfig({ dir, env })
  const { token } = config.hooks
  if (token === undefined)
    throw new Problem('config-invalid', 'hooks.token is not set, so no gateway takes a hook here.')
  const input = readInput(file, headers)
  const { url } = toAddress(dir, config)
  const { status, text, isReplay } = await withProgress('Waiting for the answer', () =>
    ask(`${url}/${hook.replace(/^\/+|\/+$/g, '')}`, {
      method: 'POST',
      headers: { ...input.headers, authorization: `Bearer ${token}` },
      body: input.body,
    }),
  )
  const answer = toCut(text, 4_000)
  if (context.json) context.printJson({ status, body: toJson(text) ?? null, replay: isReplay })
  else context.print([String(status), answer, isReplay ? '(a replay of the first answer)' : ''].join(' ').trim())
  if (status < 400) return exitCodes.ok
  return exitCodes[toRefusal(status, text).kind]
}
