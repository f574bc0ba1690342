// Reads the output of a command by paths. It is outside text, so nothing in it is trusted, not even the session id.
import { isJsonObject, type JsonObject, type JsonValue, tryParseJson } from '../../../../base/json.ts'
import type { Usage } from '../../../../model/job.ts'
import { Problem } from '../../../../core/model/problem.ts'
import { type Path, parsePath, readPath } from '../../../../core/model/path.ts'
import type { Field, Profile, UsageFields } from './profiles.ts'
import { z } from 'zod'

export type PrintedResult = {
  readonly text: string | undefined
  readonly sessionId: string | undefined
  /** The reason for a failure, in the words of the command. */
  readonly failure: string | undefined
  readonly usage: Usage | undefined
}

/** `text` and `session` come from the configuration, so an error names the key of an invalid path. */
export type ReaderOptions = {
  readonly id: string
  readonly output: Profile['output']
  readonly text: Field | undefined
  readonly session: Field | undefined
  readonly failure: readonly Field[]
  readonly usage: UsageFields | undefined
}

/** Returns undefined if the output is not the expected JSON. */
export type PrintedReader = (output: string) => PrintedResult | undefined

type FieldReader = (events: readonly JsonObject[]) => JsonValue | undefined

/** The form of all known session ids. Any other id is ignored, because the id becomes an argument of the next turn. */
const sessionId = /^[A-Za-z0-9][\w.:-]{0,199}$/

export function createPrintedReader({ id, output, text, session, failure, usage }: ReaderOptions): PrintedReader {
  if (output === 'text') {
    return (printed) => ({ text: printed.trim(), sessionId: undefined, failure: undefined, usage: undefined })
  }
  const readText = createFieldReader(text, `runners.${id}.textField`)
  const readSession = createFieldReader(session, `runners.${id}.sessionField`)
  const readFailures = failure.map((field) => createFieldReader(field, `runners.${id}`))
  const readUsage = usage === undefined ? () => undefined : createUsageReader(usage)
  return (printed) => {
    const events = output === 'json' ? readDocument(printed) : readLines(printed)
    if (events === undefined) return undefined
    const spoken = readText(events)
    const session = readSession(events)
    return {
      text: spoken === undefined || spoken === null ? undefined : toText(spoken),
      sessionId: typeof session === 'string' && sessionId.test(session) ? session : undefined,
      failure: readFailures.map((read) => toText(read(events) ?? '')).find((words) => words !== ''),
      usage: events.map(readUsage).findLast((counts) => counts !== undefined),
    }
  }
}

/** Reads one JSON document. An array of objects counts as a list of events. */
function readDocument(printed: string): JsonObject[] | undefined {
  const document = tryParseJson(printed)
  const events = (Array.isArray(document) ? document : [document]).filter(isJsonObject)
  return events.length === 0 ? undefined : events
}

/** Reads one JSON object on each line. Other lines, such as warnings, are ignored. */
function readLines(printed: string): JsonObject[] | undefined {
  const events = printed.split('\n').map(tryParseJson).filter(isJsonObject)
  return events.length === 0 ? undefined : events
}

function createFieldReader(field: Field | undefined, key: string): FieldReader {
  if (field === undefined) return () => undefined
  const path = parseField(field.path, key)
  const conditions = Object.entries(field.where ?? {}).map(([where, value]) => ({ at: parseField(where, key), value }))
  const matches = (event: JsonObject) => conditions.every(({ at, value }) => readPath(event, at) === value)
  return (events) => {
    const event = events.findLast((one) => matches(one) && readPath(one, path) !== undefined)
    return event === undefined ? undefined : readPath(event, path)
  }
}

function parseField(path: string, key: string): Path {
  return parsePath(path, (index, expected) => {
    return new Problem('config-invalid', `${key} is wrong at column ${index + 1}: expected ${expected}.`)
  })
}

function toText(value: JsonValue): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join('; ')
  return JSON.stringify(value)
}

const count = z.number().nonnegative()
/** The usage of a turn. Output that lacks one of the two required counts has no usage. */
export const PrintedUsage = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count.exactOptional(),
  reasoningTokens: count.exactOptional(),
  costUsd: count.exactOptional(),
})

const kinds = PrintedUsage.keyof().options

export function createUsageReader(fields: UsageFields): (event: JsonObject) => Usage | undefined {
  const sums = kinds.map((kind) => ({ kind, paths: (fields[kind] ?? []).map((path) => parsePath(path)) }))
  return (event) => {
    const counts = sums.flatMap(({ kind, paths }) => {
      const numbers = paths.map((path) => readPath(event, path)).filter((value) => typeof value === 'number')
      return numbers.length === 0 ? [] : [[kind, numbers.reduce((sum, number) => sum + number, 0)]]
    })
    return PrintedUsage.safeParse(Object.fromEntries(counts)).data
  }
}

/** The usage of one turn, for a command that prints the total of the session. A lower count than before means a new session. */
export function toTurnUsage(total: Usage, before: Usage | undefined): Usage {
  if (before === undefined || kinds.some((kind) => (total[kind] ?? 0) < (before[kind] ?? 0))) return total
  const turn = kinds.flatMap((kind) => {
    const now = total[kind]
    return now === undefined ? [] : [[kind, now - (before[kind] ?? 0)]]
  })
  return PrintedUsage.parse(Object.fromEntries(turn))
}
