// Prints whether the mailbox is watched, and which problems it has. The exit code shows the same.
import { readCredentials } from '../../plugins/sources/gmail/credentials.ts'
import { type GmailStatus, readStatus, toStatusFile } from '../../plugins/sources/gmail/status.ts'
import { loadConfig } from '../../gateway/config/config.ts'
import { exitCodes, Problem } from '../../core/model/problem.ts'
import type { WatchedGmail } from '../../model/config/gmail.ts'
import type { Context } from '../terminal/context.ts'
import { isAlive } from '../gateway/running.ts'
import { requireWatched } from './flags.ts'
import { toIsoTime } from '../../gateway/deliveries/records.ts'
import { renderFields, formatTime } from '../terminal/print.ts'

export async function status(context: Context): Promise<number> {
  const { dir, env } = context
  const gmail = requireWatched(loadConfig({ dir, env }).config)
  const found = await readStatus(toStatusFile(dir))
  const known = found?.account === gmail.account ? found : undefined
  const consent = findConsentProblem(dir, gmail)
  const isRunning = known !== undefined && known.state !== 'stopped' && isAlive(known.pid)
  const isMissing = consent?.code === 'gmail-consent-missing'
  const state = isMissing
    ? 'reauth-required'
    : consent !== undefined
      ? 'failing'
      : isRunning
        ? known.state
        : 'not running'
  const problems = [
    ...new Set([...(consent === undefined ? [] : [consent.message]), ...(isRunning ? known.problems : [])]),
  ]
  if (context.json) context.printJson(buildStatusFields({ gmail, state, problems, known }))
  else context.print(renderStatus({ gmail, state, problems, known }))
  if (state === 'reauth-required') return exitCodes.denied
  return state === 'watching' || state === 'starting' ? exitCodes.ok : exitCodes.unavailable
}

type StatusReport = {
  readonly gmail: WatchedGmail
  readonly state: string
  readonly problems: readonly string[]
  readonly known: GmailStatus | undefined
}

function findConsentProblem(dir: string, gmail: WatchedGmail): Problem | undefined {
  try {
    readCredentials(dir, gmail)
    return undefined
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

function buildStatusFields({ gmail: { account, mode }, state, problems, known }: StatusReport): object {
  const toIsoTimeOrNull = (at: number | undefined) => (at === undefined ? null : toIsoTime(at))
  return {
    account,
    mode,
    state,
    problems,
    pid: known?.pid ?? null,
    syncedAt: toIsoTimeOrNull(known?.syncedAt),
    mails: known?.mails ?? 0,
    gapAt: toIsoTimeOrNull(known?.gapAt),
    watchExpiresAt: toIsoTimeOrNull(known?.watchExpiresAt),
  }
}

function renderStatus({ gmail: { account, mode }, state, problems, known }: StatusReport): string {
  const formatTimeOrBlank = (at: number | undefined) => (at === undefined ? '' : formatTime(at))
  const fields = renderFields([
    ['Mailbox', account],
    ['Mode', mode],
    ['State', state],
    ['Last sync', formatTimeOrBlank(known?.syncedAt)],
    ['Mails', known === undefined ? '' : String(known.mails)],
    [
      'Gap',
      known?.gapAt === undefined ? '' : `${formatTimeOrBlank(known.gapAt)}: Gmail no longer had the whole history`,
    ],
    ['Watched until', formatTimeOrBlank(known?.watchExpiresAt)],
  ])
  const next =
    state === 'not running'
      ? ['Start the gateway with "hookloom start", or run "hookloom gmail run" in a second process.']
      : []
  return [fields, ...problems.map((problem) => `✗ ${problem}`), ...next].join('\n')
}
