// The tools of `hookloom mcp` that ask the running gateway. Each is one call of its API, with the parameters and the body of that call.
import { z } from 'zod'
import { findId } from '../gateway/ids.ts'
import { askAnyCall } from '../gateway/gateway.ts'
import type { CallName } from '../../model/api/ask.ts'
import { TryKeptBody } from '../../model/api/bodies.ts'
import type { Call } from '../../model/api/call.ts'
import { calls } from '../../model/api/calls.ts'
import { ReplayReport } from '../../model/api/replay.ts'
import type { Context } from '../terminal/context.ts'

export type Tool = {
  readonly name: string
  readonly description: string
  /** False: the tool changes nothing, so it is listed even without --write. */
  readonly isWriting: boolean
  readonly input: z.ZodObject
  /** How to see the part of a long answer that was left out. */
  readonly rest: string
  /** Describes the files that the tool writes itself, for the audit log. A tool that calls the API does not need it: the gateway records the call. */
  writes?(input: Readonly<Record<string, unknown>>): string
  run(context: Context, input: Readonly<Record<string, unknown>>): Promise<unknown>
}

export const id = z.string().min(1).max(200).describe('The id of a delivery, a unique prefix of one, or "last".')

type Row = Pick<Tool, 'name' | 'rest'> & {
  readonly call: CallName
  readonly isWriting?: boolean
  /** Replaces the summary of the call. */
  readonly description?: string
  /** The values of query parameters that the tool was not given. */
  readonly defaults?: Readonly<Record<string, string>>
  /** Replaces the schema of the call's body, if the API accepts several. */
  readonly body?: z.ZodObject
  /** The body of the call, made of the fields of `body`, if the tool names them in another way. */
  readonly toBody?: (fields: Readonly<Record<string, unknown>>) => object
  /** Selects the part of the answer that is shown. */
  readonly show?: (answer: object) => unknown
}

const rows: readonly Row[] = [
  {
    name: 'list',
    call: 'GET /api/deliveries',
    description:
      'Lists deliveries, the newest last. "state" is pending, parked (its transform failed), accepted, skipped, dropped or dead (a run failed for good).',
    rest: 'Give a smaller "limit", and "before" for older rows.',
  },
  {
    name: 'refused',
    call: 'GET /api/refusals',
    description:
      'Lists the requests that were refused, such as those without a valid proof of their sender, with the reason.',
    defaults: { limit: '20' },
    rest: 'Give a "hook", or a smaller "limit".',
  },
  { name: 'show', call: 'GET /api/deliveries/{id}', rest: '"hookloom show <id> --json" prints all of it.' },
  {
    name: 'health',
    call: 'GET /api/health',
    description:
      'Shows what is live: whether a save waits to be published ("held"), which modules are broken ("problems"), and what waits.',
    rest: '"hookloom doctor" prints what is wrong.',
    show: (answer) => Object.fromEntries(Object.entries(answer).filter(([name]) => name !== 'minutes')),
  },
  {
    name: 'try',
    call: 'POST /api/try',
    description:
      'Shows what a "messageTemplate" and conditions ("match") of a mapping that is not saved make of the newest kept requests. Stores and sends nothing.',
    // the keys of a mapping, so that what was tried can be saved as it is
    body: TryKeptBody.omit({ draft: true }).extend({
      messageTemplate: TryKeptBody.shape.draft.shape.template,
      match: TryKeptBody.shape.draft.shape.match,
    }),
    toBody: ({ messageTemplate, match, ...query }) => ({ ...query, draft: { template: messageTemplate, match } }),
    rest: 'Give a smaller "last".',
  },
  {
    name: 'replay',
    call: 'POST /api/replay',
    description:
      'Runs kept requests through the live code and through the files on disk, and shows the requests whose outcome differs. Stores and sends nothing.',
    rest: 'Give a smaller "last", or a "hook".',
    show: showChanged,
  },
  {
    name: 'capture',
    call: 'POST /api/deliveries/{id}/capture',
    isWriting: true,
    description:
      'Makes a fixture of a kept request, without its secrets. It expects what the code on disk makes of it now. "module" is by default that of its mapping.',
    rest: '',
  },
  {
    name: 'update',
    call: 'POST /api/fixtures/update',
    isWriting: true,
    description: 'Writes what the code on disk makes of the fixtures of a module as what they expect.',
    rest: '',
  },
  {
    name: 'publish',
    call: 'POST /api/publish',
    isWriting: true,
    description: 'Makes the files on disk live, if the gateway holds them back because they change recent deliveries.',
    rest: '',
  },
  { name: 'retry', call: 'POST /api/deliveries/{id}/retry', isWriting: true, rest: '' },
]

export const apiTools: readonly Tool[] = rows.map(buildTool)

function buildTool({
  name,
  call: asked,
  isWriting = false,
  description,
  defaults = {},
  body,
  toBody = (fields) => fields,
  rest,
  show = (answer) => answer,
}: Row): Tool {
  const call: Call = calls[asked]
  const { query } = call
  const given = body ?? call.body?.schema
  const parts = given instanceof z.ZodObject ? given : z.object({})
  const names = [...asked.matchAll(/\{(\w+)\}/g)].map(([, part = '']) => part)
  const text = z.union([z.string().max(500), z.number()])
  const input = z.strictObject({
    ...Object.fromEntries(names.map((part) => [part, id])),
    ...Object.fromEntries(Object.entries(query).map(([part, meaning]) => [part, text.optional().describe(meaning)])),
    ...parts.shape,
  })
  return {
    name,
    description: description ?? call.summary,
    isWriting,
    input,
    rest,
    async run(context, values) {
      const own = typeof values['id'] === 'string' ? await findId(context, values['id']) : ''
      const texts = Object.keys(query).flatMap((part) => {
        const value = values[part] ?? defaults[part]
        return value === undefined ? [] : [[part, String(value)] as const]
      })
      const fields = Object.keys(parts.shape).flatMap((part) =>
        values[part] === undefined ? [] : [[part, values[part]] as const],
      )
      const found = await askAnyCall(context, asked, {
        params: { id: own },
        query: Object.fromEntries(texts),
        ...(fields.length > 0 && { body: toBody(Object.fromEntries(fields)) }),
      })
      return typeof found === 'object' && found !== null ? show(found) : found
    },
  }
}

/** A report of a replay, without the requests whose outcome stays the same. */
function showChanged(report: object): object {
  const { deliveries, ...others } = ReplayReport.parse(report)
  return { ...others, deliveries: deliveries.filter((delivery) => delivery.class !== 'same') }
}
