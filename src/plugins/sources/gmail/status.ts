// Keeps the status of a watcher: in a file for `gmail status`, and in memory for this process.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeStateFile } from '../shared/kit.ts'

const states = ['starting', 'watching', 'failing', 'reauth-required', 'stopped'] as const

/** Moments are in milliseconds since the epoch. No field contains a secret or a mail. */
export const GmailStatus = z.object({
  account: z.string(),
  mode: z.string(),
  state: z.enum(states),
  /** The current problems, one sentence each. */
  problems: z.array(z.string()),
  /** The process that watches. */
  pid: z.int(),
  startedAt: z.number(),
  syncedAt: z.number().optional(),
  /** The number of mails delivered since the start. */
  mails: z.int(),
  /** The last time at which the history had expired. */
  gapAt: z.number().optional(),
  watchExpiresAt: z.number().optional(),
  /** The topic of the watch. */
  topic: z.string().optional(),
})
export type GmailStatus = z.infer<typeof GmailStatus>

/** A part of the watcher that can have a problem. */
export type WatcherPart = 'start' | 'consent' | 'sync' | 'watch' | 'subscription' | 'pull' | 'push'

type StatusBoard = {
  current(): GmailStatus
  update(change: Partial<Pick<GmailStatus, 'syncedAt' | 'mails' | 'gapAt' | 'watchExpiresAt' | 'topic'>>): void
  /** `undefined` if the part works again. */
  setProblem(part: WatcherPart, problem: string | undefined): void
  end(): void
  /** Resolves when the newest status is in the file. */
  waitUntilWritten(): Promise<void>
}

export function createStatusBoard(
  { file, account, mode }: { file: string; account: string; mode: string },
  clock: () => number,
): StatusBoard {
  const problems = new Map<WatcherPart, string>()
  let rest: Pick<GmailStatus, 'syncedAt' | 'mails' | 'gapAt' | 'watchExpiresAt' | 'topic'> = { mails: 0 }
  let hasEnded = false
  const startedAt = clock()
  let writing: Promise<void> = Promise.resolve()

  const chooseState = (): GmailStatus['state'] => {
    if (hasEnded) return 'stopped'
    if (problems.has('consent')) return 'reauth-required'
    if (problems.size > 0) return 'failing'
    return rest.syncedAt === undefined ? 'starting' : 'watching'
  }
  const current = (): GmailStatus => ({
    account,
    mode,
    state: chooseState(),
    problems: [...problems.values()],
    pid: process.pid,
    startedAt,
    ...rest,
  })
  const write = () => {
    // a folder that cannot be written must not end the watcher
    writing = writing.then(() => writeStatus(file, current())).catch(() => undefined)
  }

  return {
    current,
    update(change) {
      rest = { ...rest, ...change }
      write()
    },
    setProblem(part, problem) {
      if (problems.get(part) === problem) return
      if (problem === undefined) problems.delete(part)
      else problems.set(part, problem)
      write()
    },
    end() {
      hasEnded = true
      write()
    },
    waitUntilWritten: () => writing,
  }
}

async function writeStatus(file: string, status: GmailStatus): Promise<void> {
  await writeStateFile(file, `${JSON.stringify(status)}\n`)
}

/** The stored status; undefined if no watcher has ever run here, or if the file cannot be read. */
export async function readStatus(file: string): Promise<GmailStatus | undefined> {
  try {
    return GmailStatus.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch {
    return undefined
  }
}

/** The file with the status of the watcher. */
export function toStatusFile(dir: string): string {
  return join(dir, 'state', 'gmail-status.json')
}
