// Channels in the operator's own code. An exception or an invalid result counts as `ambiguous`, unless the exception shows that the request
// did not arrive.
import { z } from 'zod'
import type { Channel, Outgoing, OwnChannel, SendResult } from '../model/channel.ts'
import { cut, toPrintableLine } from '../base/text.ts'
import { toRetryWait } from '../base/http.ts'
import { splitMarkdown } from './chunks.ts'
import { explainUnsent } from './http.ts'
import { render } from './markdown.ts'
import { safeMarkdown } from './markup.ts'

/** The maximum length of a piece, if the module sets none. */
const defaultMaxChars = 4_000
/** The maximum length of a piece, if the code of the module is invalid, so that its limit is unknown. */
const unknownMaxChars = 2_000
const brokenRetryMs = 60_000
const maxDetailChars = 500

const detail = z.string().transform((text) => cut(toPrintableLine(text), maxDetailChars))
const retryFields = { retryAfterMs: z.number().nonnegative().optional(), detail }
const Result = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('sent'), id: z.string() }),
  z.object({ kind: z.literal('rate-limited'), ...retryFields }),
  z.object({ kind: z.literal('transient'), ...retryFields }),
  z.object({ kind: z.literal('ambiguous'), detail }),
  z.object({ kind: z.literal('permanent'), detail }),
])
const ProbeResult = z.object({ ok: z.boolean(), detail })

export function createOwnChannel(own: OwnChannel, to: string | undefined): Channel {
  const id = `own:${own.name}`
  if (own.kind === 'broken') return createBrokenChannel(id, own.problem.detail, to)
  const { name, definition, options, describeThrown } = own
  const describe = (what: string) => `The channel hooks/channels/${name} ${what}`
  const describeException = (thrown: unknown) => describe(`threw ${describeThrown(thrown)}.`)

  async function send(message: Parameters<Channel['send']>[0]): Promise<SendResult> {
    let given: unknown
    try {
      given = await definition.send({ ...message, ...toMarkdown(message) }, options)
    } catch (thrown) {
      const why = explainUnsent(thrown)
      if (why !== undefined) return { kind: 'transient', detail: describe(`could not connect: ${why}.`) }
      return { kind: 'ambiguous', detail: describeException(thrown) }
    }
    const { data: result } = Result.safeParse(given)
    if (result === undefined) {
      const expected = 'Return { kind: "sent", id }, or another kind with a detail, as SendResult defines it.'
      return { kind: 'ambiguous', detail: `${describe('returned no valid result.')} ${expected}` }
    }
    if (result.kind !== 'rate-limited' && result.kind !== 'transient') return result
    return { kind: result.kind, detail: result.detail, ...toRetryWait(result.retryAfterMs) }
  }

  return {
    id,
    dedupes: definition.dedupes === true,
    to,
    whyNot(recipient) {
      try {
        const why: unknown = definition.whyNot?.(recipient, options)
        return typeof why === 'string' ? cut(toPrintableLine(why), maxDetailChars) : undefined
      } catch (thrown) {
        return describeException(thrown)
      }
    },
    split: (markdown) => splitMarkdown(markdown, { limit: definition.maxChars ?? defaultMaxChars }),
    send,
    ...(definition.probe && {
      async probe(signal) {
        try {
          const probed = ProbeResult.safeParse(await definition.probe?.(options, signal))
          return probed.data ?? { ok: false, detail: describe('must return { ok, detail } from probe.') }
        } catch (thrown) {
          return { ok: false, detail: describeException(thrown) }
        }
      },
    }),
  }
}

/** The code of a channel is given Markdown only. */
function toMarkdown({ text, format }: Outgoing): Pick<Outgoing, 'text' | 'format'> {
  return { text: format === 'plain' ? render(text, safeMarkdown, format) : text, format: 'markdown' }
}

/** Replaces a channel whose code is invalid: replies wait until the code is fixed. */
function createBrokenChannel(id: string, why: string, to: string | undefined): Channel {
  return {
    id,
    dedupes: false,
    to,
    whyNot: () => undefined,
    split: (markdown) => splitMarkdown(markdown, { limit: unknownMaxChars }),
    send: async () => ({
      kind: 'rate-limited',
      retryAfterMs: brokenRetryMs,
      detail: `${why} The reply waits until it is fixed.`,
    }),
    probe: async () => ({ ok: false, detail: why }),
  }
}
