// Sends mails to the hook of a gateway over HTTP, for `gmail run`. The position is in a file. It moves only after the gateway has accepted every
// mail, or has skipped it.
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { findErrorCode, Problem, tryParseJson, writeStateFile } from '../shared/kit.ts'
import { gmailHook, type GmailState, type MailSink, toMailKey } from './mail.ts'

const timeoutMs = 60_000

const Kept = z.object({ account: z.string(), historyId: z.string(), syncedAt: z.number() })

type HttpSinkParts = {
  readonly account: string
  /** The base URL of the hooks, and the token. It is called for each mail, because the gateway may have restarted elsewhere. */
  readonly hooks: () => { readonly url: string; readonly token: string }
  readonly file: string
}

export function createHttpSink({ account, hooks, file }: HttpSinkParts): MailSink {
  return {
    state: () => readMailboxState(file, account),
    async deliver(payloads, state) {
      let refused: Problem | undefined
      for (const payload of payloads) {
        const { url, token } = hooks()
        const status = await post(`${url}/${gmailHook}`, {
          token,
          key: toMailKey(payload),
          body: JSON.stringify(payload),
        })
        if (status === 200 || status === 204) continue
        if (!refusalsOfOne.has(status)) throw toProblem(status)
        // not thrown yet: a gateway that refuses one mail may accept the next one
        refused ??= toProblem(status)
      }
      if (refused !== undefined) throw refused
      await writeStateFile(file, `${JSON.stringify({ account, ...state })}\n`)
    },
  }
}

/** The stored position; undefined if no mailbox was ever read, or only another one. Throws `config-invalid` if the file cannot be read. */
export async function readMailboxState(file: string, account: string): Promise<GmailState | undefined> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    return findErrorCode(error) === 'ENOENT' ? undefined : ''
  })
  if (text === undefined) return undefined
  const parsed = Kept.safeParse(tryParseJson(text))
  // a new position would skip all mails since then, so a person must decide
  if (!parsed.success) {
    throw new Problem(
      'config-invalid',
      `${file} cannot be read. Delete it to start with the mails that arrive from now on.`,
    )
  }
  const { account: of, historyId, syncedAt } = parsed.data
  return of === account ? { historyId, syncedAt } : undefined
}

/** The statuses for an invalid mail, a mail that is too large, and a mail that a transform refuses. */
const refusalsOfOne = new Set([400, 413, 422])

/** Posts one mail, and returns the status of the answer. Throws if no gateway answers. */
async function post(url: string, { token, key, body }: { token: string; key: string; body: string }): Promise<number> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': key },
      body,
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    })
    await response.arrayBuffer()
    return response.status
  } catch (cause) {
    throw new Problem(
      'gateway-unreachable',
      `No gateway answers at ${new URL(url).origin}. Start one with "hookloom start".`,
      { cause },
    )
  }
}

/** The problem of a refused mail: the position does not move, so the mail is sent again. */
function toProblem(status: number): Problem {
  const code = refusalsOfOne.has(status) ? 'payload-invalid' : 'gateway-unreachable'
  const hint = status === 404 ? ' Is "gmail" in hooks.presets, and hooks.enabled true?' : ''
  return new Problem(
    code,
    `The gateway answered a mail with ${status}.${hint} "hookloom list --refused" shows the reason; the mail is sent again.`,
  )
}
