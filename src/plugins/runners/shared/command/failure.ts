// Describes for the operator why a command gave no reply, and decides whether a retry may help.
import { cut, toPrintableLine } from '../../../../base/text.ts'
import type { ChildEnd } from './child.ts'
import { type RunFailure, permanentFailure, retryableFailure, unavailableFailure } from '../../../../model/runner.ts'

/** The failed runner, its program, and the values of its environment that must not be shown. */
type FailedCommand = { readonly id: string; readonly command: string; readonly secrets: readonly string[] }

const maxWords = 500
const maxLines = 5

/** The wait after a rate limit. It is long, so that many waiting jobs do not retry every few seconds. */
const limitWaitMs = 300_000

/** Exit codes after which a retry does not help: usage (2, 64), permission, configuration, not executable, not found. */
const permanentCodes = new Set([2, 64, 77, 78, 126, 127])
/** Temporary errors of the system: too many processes or files, no memory, a program that is being replaced. */
const transientCodes = new Set(['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM', 'ETXTBSY'])

const limitWords = /rate.?limit|usage limit|too many requests|overloaded/i
const refusalWords = /\b401\b|unauthorized|not logged in|invalid api key|authentication_error/i
const sessionGone =
  /no (conversation|session|thread|rollout) (was )?found|(conversation|session|thread|rollout)\b.{0,80}(not found|does not exist|is unknown)|unknown (conversation|session|thread)/i

/** Whether the command no longer knows the session. */
export function isSessionGone(words: string): boolean {
  return sessionGone.test(words)
}

export function toStartFailure({ id, command }: FailedCommand, code: string): RunFailure {
  const program = JSON.stringify(command)
  switch (code) {
    case 'ENOENT':
      return permanentFailure(
        `The program ${program} was not found. Install it, or set runners.${id}.command to its full path.`,
      )
    case 'EACCES':
      return permanentFailure(
        `The program ${program} may not be executed. Check the file that runners.${id}.command names.`,
      )
    case 'E2BIG':
      return permanentFailure(
        `The arguments for ${program} are longer than the system takes. ` +
          `Set runners.${id}.input to "stdin", or shorten the system text of the agent.`,
      )
    default:
      return (transientCodes.has(code) ? unavailableFailure : permanentFailure)(
        `The program ${program} (runners.${id}) could not be started: ${code}.`,
      )
  }
}

export function toFolderFailure({ id }: FailedCommand, folder: string): RunFailure {
  return permanentFailure(
    `The folder ${JSON.stringify(folder)} in which runners.${id} works does not exist. ` +
      'Create it, or set the workspace of the agent to another folder.',
  )
}

export function toStopFailure({ id, command }: FailedCommand, reason: unknown): RunFailure {
  const isLate = reason instanceof DOMException && reason.name === 'TimeoutError'
  const sentence = `The command ${JSON.stringify(command)} (runners.${id}) was stopped before it ended`
  return isLate
    ? {
        status: 'timeout',
        detail: `${sentence}: it reached its time limit. Raise timeoutSeconds of the mapping or of the agent.`,
      }
    : retryableFailure(`${sentence}.`)
}

export function toOutputLimitFailure({ id, command }: FailedCommand, maxBytes: number): RunFailure {
  return permanentFailure(
    `The command ${JSON.stringify(command)} (runners.${id}) printed more than ${maxBytes / 1_048_576} MB and was stopped. Ask it for less.`,
  )
}

export function toJsonFailure({ id, command }: FailedCommand, expected: string): RunFailure {
  return permanentFailure(
    `The command ${JSON.stringify(command)} printed something that is not ${expected.toUpperCase()}. ` +
      `Ask it for JSON in runners.${id}.args, or set runners.${id}.output to "text".`,
  )
}

export function toTextFailure({ id, command }: FailedCommand, path: string): RunFailure {
  return permanentFailure(
    `The command ${JSON.stringify(command)} printed JSON without ${JSON.stringify(path)}. ` +
      `Set runners.${id}.textField to the path of the reply.`,
  )
}

/** `said`: the reason in the command's JSON; if it is undefined, the last lines of stderr count. */
export function toRunFailure(
  failed: FailedCommand,
  end: Extract<ChildEnd, { kind: 'exited' }>,
  said: string | undefined,
): RunFailure {
  const { id, command } = failed
  const words = redactWords(said ?? takeLastLines(end.complaint), failed)
  const how =
    end.code === 0 ? 'failed' : end.code === null ? `was ended by ${end.signal}` : `ended with exit code ${end.code}`
  const detail = `The command ${JSON.stringify(command)} (runners.${id}) ${how}${
    words === '' ? ' and did not say why. Run it by hand.' : `: ${words}`
  }`
  const quotes = words !== ''
  // only the JSON counts here: stderr may quote outside text
  if (said !== undefined && limitWords.test(said))
    return { status: 'unavailable', retryAfterMs: limitWaitMs, detail, quotes }
  const isHopeless = permanentCodes.has(end.code ?? 0) || (said !== undefined && refusalWords.test(said))
  return { ...(isHopeless ? permanentFailure(detail) : retryableFailure(detail)), quotes }
}

function takeLastLines(complaint: string): string {
  const lines = complaint.split(/\r\n|\r|\n/).filter((line) => line.trim() !== '')
  return lines.slice(-maxLines).join(' · ')
}

function redactWords(text: string, { secrets }: FailedCommand): string {
  const hidden = secrets.reduce((words, secret) => words.replaceAll(secret, '[hidden]'), text)
  return cut(toPrintableLine(hidden), maxWords)
}
