import { toLoggedError } from './exceptions.ts'

/** The methods of pino that are used. Fields never contain a token, a signature or a payload. */
export type Log = {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

export const logLevels = ['debug', 'info', 'warn', 'error'] as const

/** Drops the lines below a level. The level is read for each line, because a reload may change it. */
export function withLevel(log: Log, level: () => (typeof logLevels)[number]): Log {
  const isLogged = (name: keyof Log) => logLevels.indexOf(name) >= logLevels.indexOf(level())
  const from =
    (name: keyof Log) =>
    (fields: object, message: string): void => {
      if (isLogged(name)) log[name](fields, message)
    }
  return { debug: from('debug'), info: from('info'), warn: from('warn'), error: from('error') }
}

/**
 * A log without texts that may quote a payload: the message of an exception (`err`), and the `frame` of a problem, which has the values of
 * a fixture or of an exception in the code. `hookloom check` shows frames.
 */
export function withoutQuotes(log: Log): Log {
  const from =
    (name: keyof Log) =>
    (fields: object, message: string): void => {
      const isQuoting = 'err' in fields || 'frame' in fields
      log[name](isQuoting ? removeQuotes(fields) : fields, message)
    }
  return { debug: from('debug'), info: from('info'), warn: from('warn'), error: from('error') }
}

function removeQuotes(fields: object): object {
  const kept = Object.entries(fields).filter(([name]) => name !== 'frame')
  return Object.fromEntries(kept.map(([name, value]) => [name, name === 'err' ? toLoggedError(value) : value]))
}
