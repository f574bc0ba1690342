// Channels in the code of integrators. An exception or an invalid result counts as `ambiguous`, unless the exception shows that the request
// did not arrive.
import { z } from 'zod'
import {
  type Channel,
  type ChannelHost,
  type ChannelKeys,
  type ChannelParts,
  guardProbe,
  type Outgoing,
  type OwnChannel,
  type SendResult,
  type SimpleChannelDefinition,
  type TextFormat,
} from '../../../model/channel.ts'
import { createSecretMask, listConfigSecrets } from '../../../model/config/secrets.ts'
import { abortAfter, attemptWithin } from '../../../base/time.ts'
import { cut, toPrintableLine } from '../../../base/text.ts'
import { toRetryWait } from '../../../base/http.ts'
import { splitMarkdown } from './chunks.ts'
import { explainUnsent } from './http.ts'
import { render } from './markdown.ts'
import { safeMarkdown } from './markup.ts'

/** The maximum length of a piece, if the module sets none. */
const defaultMaxChars = 4_000
/** The maximum length of a piece, if the code of the module is invalid, so that its limit is unknown. */
const unknownMaxChars = 2_000
const brokenRetryMs = 60_000
/** The time limit of an attempt whose section names none. The worker has the same. */
const maxTimeoutMs = 60_000
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
const Pieces = z.array(z.string()).min(1)

/**
 * Makes the channel of a loaded definition. `keys`: those of its section. While code of it throws before a message is sent, its messages wait, as
 * for code that does not load. `hide`: hides secrets in what the code returns. `warn`: tells the operator what no result of a message shows.
 */
export function createOwnChannel(
  own: OwnChannel,
  { to, onUnknown, timeoutMs }: Partial<ChannelKeys>,
  host: ChannelHost,
  {
    hide = createMask(own),
    warn = () => {},
  }: { hide?: (text: string) => string; warn?: (message: string) => void } = {},
): Channel {
  const section = { id: own.id, to, repeatsUnknown: onUnknown === 'repeat' }
  if (own.kind === 'broken') return { ...createBrokenChannel(own.problem.detail), ...section }
  const { label, definition, options, describeThrown } = own
  const describe = (what: string) => `The channel ${label} ${what}`
  const describeException = (thrown: unknown) => describe(`threw ${describeThrown(thrown)}.`)
  let parts: ChannelParts
  try {
    // as: the schema has returned the options, and the gateway has added its keys
    parts = 'create' in definition ? definition.create(options as ChannelKeys, host) : toParts(definition, options)
  } catch (thrown) {
    return { ...createBrokenChannel(describeException(thrown)), ...section }
  }
  const missing = (['whyNot', 'split', 'send'] as const).find((name) => typeof parts[name] !== 'function')
  if (missing !== undefined)
    return { ...createBrokenChannel(describe(`must return ${missing} from create.`)), ...section }

  function checkRecipient(recipient: string | undefined): {
    readonly why?: string | undefined
    readonly fault?: string
  } {
    try {
      const why: unknown = parts.whyNot(recipient)
      return { why: typeof why === 'string' ? cut(toPrintableLine(hide(why)), maxDetailChars) : undefined }
    } catch (thrown) {
      return { fault: describeException(thrown) }
    }
  }

  async function send(message: Outgoing): Promise<SendResult> {
    const { fault } = checkRecipient(message.to ?? to)
    if (fault !== undefined) return toWaiting(fault)
    const ms = timeoutMs ?? maxTimeoutMs
    const limited = timeoutMs === undefined ? message : { ...message, signal: abortAfter(ms, message.signal) }
    const attempt = await attemptWithin<unknown>(ms, () => parts.send(limited))
    if (attempt.kind === 'late') return { kind: 'ambiguous', detail: describe(`did not end within ${ms} ms.`) }
    if (attempt.kind === 'ended') return toResult(attempt.value, { describe, hide })
    const why = explainUnsent(attempt.thrown)
    if (why !== undefined) return { kind: 'transient', detail: describe(`could not connect: ${why}.`) }
    return { kind: 'ambiguous', detail: describeException(attempt.thrown) }
  }

  let hasWarned = false
  /** The pieces that the code makes. If they are invalid, the text is split all the same, because it must not be lost. */
  function split(text: string, format?: TextFormat): readonly string[] {
    let what: string
    try {
      const pieces = Pieces.safeParse(parts.split(text, format))
      if (pieces.success) return pieces.data
      what = describe('returned no list of texts from split.')
    } catch (thrown) {
      what = describe(`threw ${describeThrown(thrown)} in split.`)
    }
    if (!hasWarned) warn(`${what} Its messages are split after ${unknownMaxChars.toLocaleString('en')} characters.`)
    hasWarned = true
    return splitMarkdown(text, { limit: unknownMaxChars })
  }

  return {
    ...section,
    dedupes: parts.dedupes === true || parts.dedupes === 'briefly' ? parts.dedupes : false,
    whyNot: (recipient) => checkRecipient(recipient ?? to).why,
    split,
    send,
    ...guardProbe(parts, { describe, describeException }),
  }
}

function toParts(definition: SimpleChannelDefinition<unknown>, options: unknown): ChannelParts {
  const { probe } = definition
  return {
    dedupes: definition.dedupes === true,
    whyNot: (to) => definition.whyNot?.(to, options),
    split: (markdown) => splitMarkdown(markdown, { limit: definition.maxChars ?? defaultMaxChars }),
    send: async (message) => await definition.send({ ...message, ...toMarkdown(message) }, options),
    ...(probe && { probe: async (signal) => await probe.call(definition, options, signal) }),
  }
}

/** Hides the secrets among the options: a provider may repeat them in its answer. */
function createMask(own: OwnChannel): (text: string) => string {
  const options = own.kind === 'sound' ? own.options : {}
  return createSecretMask(listConfigSecrets({ options }, []), '***')
}

function toResult(
  given: unknown,
  { describe, hide }: { describe: (what: string) => string; hide: (text: string) => string },
): SendResult {
  const { data: result } = Result.safeParse(given)
  if (result === undefined) {
    const expected = 'Return { kind: "sent", id }, or another kind with a detail, as SendResult defines it.'
    return { kind: 'ambiguous', detail: `${describe('returned no valid result.')} ${expected}` }
  }
  if (result.kind === 'sent') return { kind: 'sent', id: hide(result.id) }
  const wait = 'retryAfterMs' in result ? toRetryWait(result.retryAfterMs) : {}
  return { kind: result.kind, detail: hide(result.detail), ...wait }
}

/** The code of a channel is given Markdown only. */
function toMarkdown({ text, format }: Outgoing): Pick<Outgoing, 'text' | 'format'> {
  return { text: format === 'plain' ? render(text, safeMarkdown, format) : text, format: 'markdown' }
}

function toWaiting(why: string): SendResult {
  return { kind: 'rate-limited', retryAfterMs: brokenRetryMs, detail: `${why} The reply waits until it is fixed.` }
}

/** Replaces a channel whose code is invalid: replies wait until the code is fixed. */
function createBrokenChannel(why: string): ChannelParts {
  return {
    dedupes: false,
    whyNot: () => undefined,
    split: (markdown) => splitMarkdown(markdown, { limit: unknownMaxChars }),
    send: async () => toWaiting(why),
    probe: async () => ({ ok: false, detail: why }),
  }
}
