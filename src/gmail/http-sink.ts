// Mails over HTTP to a gateway's hook, for `gmail run` beside it: the place moves in a file of its own, after every 200.
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { writeStateFile } from '../loader/config-file.ts'
import { toJson } from '../base/json.ts'
import { Problem } from '../model/problem.ts'
import { gmailHook, type GmailState, type MailSink, toMailKey } from './mail.ts'

const timeoutMs = 60_000

const Kept = z.object({ account: z.string(), historyId: z.string(), syncedAt: z.number() })

export type HttpSinkParts = {
  readonly account: string
  /** Base of the gateway's hooks. Asked for each delivery: the gateway may have begun again elsewhere. */
  readonly hooks: () => { readonly url: string; readonly token: string }
  readonly file: string
}

export function createHttpSink({ account, hooks, file }: HttpSinkParts): MailSink {
  return {
    state: () => readState(file, account),
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
        refused ??= toProblem(status)
        // what a gateway refuses for one mail it need not refuse for the next
        if (!refusalsOfOne.has(status)) break
      }
      if (refused !== undefined) throw refused
      await writeStateFile(file, `${JSON.stringify({ account, ...state })}\n`)
    },
  }
}

/** Undefined where nothing was ever read, or another mailbox. */
export async function readState(file: string, account: string): Promise<GmailState | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const parsed = Kept.safeParse(toJson(text))
  // begun anew, it would step over every mail since: somebody has to look
  if (!parsed.success) {
    throw new Problem(
      'config-invalid',
      `${file} cannot be read. Delete it to start with the mails that arrive from now on.`,
    )
  }
  const { account: of, historyId, syncedAt } = parsed.data
  return of === account ? { historyId, syncedAt } : undefined
}

/** Invalid, too large, or of a shape that a transform does not take. */
const refusalsOfOne = new Set([400, 413, 422])

/** Gives the status of the answer. Throws where no gateway answers. */
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

/** A mail that is refused keeps the place where it is, and is sent again. */
function toProblem(status: number): Problem {
  const code = refusalsOfOne.has(status) ? 'payload-invalid' : 'gateway-unreachable'
  const hint = status === 404 ? ' Is "gmail" in hooks.presets, and hooks.enabled true?' : ''
  return new Problem(
    code,
    `The gateway answered a mail with ${status}.${hint} "hookloom list --refused" shows the reason; the mail is sent again.`,
  )
}
