// The gateway's log: JSON lines in production, a readable line in development.
import pino from 'pino'
import type { Log } from '../../base/log.ts'
import { replaceInvisible, toPrintable, toPrintableLine } from '../../base/text.ts'

/** Writes one JSON object a line to standard output. Terminal controls and invisible characters are escaped as in JSON. */
export function createJsonLog(): Log {
  return pino(
    {
      // the gateway itself drops the lines below the level `server.log`
      level: 'debug',
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
    },
    batchLines(pino.destination({ fd: 1, sync: true })),
  )
}

/** Escapes terminal controls and invisible characters: JSON itself escapes only those below U+0020. The line feed at the end stays. */
export function escapeLine(line: string): string {
  return replaceInvisible(line, (character) =>
    Array.from({ length: character.length }, (_, at) => escapeUnit(character.charCodeAt(at))).join(''),
  )
}

function escapeUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}

/** Collects the lines of one turn of the event loop into one write: under load, a write for each line takes a tenth of a request's time. */
function batchLines(destination: { write(text: string): unknown }): pino.DestinationStream {
  let lines = ''
  const flush = () => {
    if (lines !== '') destination.write(lines)
    lines = ''
  }
  process.once('exit', flush)
  return {
    write: (line) => {
      if (lines === '') setImmediate(flush)
      lines += escapeLine(line)
    },
  }
}

/** Writes readable lines for a developer's terminal, made printable because a log line may quote text from outside. */
export async function createPrettyLog(): Promise<Log> {
  const { default: pretty } = await import('pino-pretty')
  const log = pino(
    { level: 'debug', base: null },
    pretty({
      colorize: process.stdout.isTTY && !process.env['NO_COLOR'],
      sync: true,
      translateTime: 'HH:MM:ss',
      // a code frame is printed as text, not as a JSON string; the values of the other fields are in the message
      ignore: 'frame,problems,delivery,job,repeated',
      messageFormat: (line, key) => [line[key], line['frame']].filter((part) => typeof part === 'string').join('\n\n'),
    }),
  )
  const createPrinter =
    (level: keyof Log) =>
    (fields: object, message: string): void =>
      log[level](toPrintableFields(fields, message), toPrintableLine(message))
  return {
    debug: createPrinter('debug'),
    info: createPrinter('info'),
    warn: createPrinter('warn'),
    error: createPrinter('error'),
  }
}

/** The fields without the ids that the message shows. If it shows a job id, the delivery id is left out too: "hookloom show" accepts both. */
function toPrintableFields(fields: object, message: string): object {
  const isShown = (value: unknown) => typeof value === 'string' && value !== '' && message.includes(value)
  const isOfJob = 'jobId' in fields && isShown(fields.jobId)
  const kept = Object.entries(fields).filter(
    ([name, value]) => !(name.endsWith('Id') && isShown(value)) && !(isOfJob && name === 'deliveryId'),
  )
  return Object.fromEntries(kept.map(([name, value]: [string, unknown]) => [name, toPrintableValue(value)]))
}

/** Makes all texts in a value printable, at any depth. */
function toPrintableValue(value: unknown): unknown {
  if (typeof value === 'string') return toPrintable(value)
  if (value instanceof Error)
    return { type: value.name, message: toPrintable(value.message), stack: toPrintable(value.stack ?? '') }
  if (Array.isArray(value)) return value.map(toPrintableValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [toPrintable(key), toPrintableValue(item)]))
}
