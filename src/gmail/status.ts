// How a watcher is: kept in a file for `gmail status`, and told to whoever asks in the same process.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeStateFile } from '../loader/config-file.ts'

const states = ['starting', 'watching', 'failing', 'reauth-required', 'stopped'] as const

/** Moments are in milliseconds since the epoch. No field holds a secret or a mail. */
export const GmailStatus = z.object({
  account: z.string(),
  mode: z.string(),
  state: z.enum(states),
  /** One sentence each: what does not work now. */
  problems: z.array(z.string()),
  /** The process that watches. */
  pid: z.int(),
  startedAt: z.number(),
  syncedAt: z.number().optional(),
  /** Mails that were delivered since the start. */
  mails: z.int(),
  /** When the history had expired, last. */
  gapAt: z.number().optional(),
  watchExpiresAt: z.number().optional(),
  /** What the watch publishes to. */
  topic: z.string().optional(),
})
export type GmailStatus = z.infer<typeof GmailStatus>

/** What goes wrong, by the part that it goes wrong in. */
export type Part = 'start' | 'consent' | 'sync' | 'watch' | 'pull' | 'push'

export type StatusBoard = {
  current(): GmailStatus
  note(change: Partial<Pick<GmailStatus, 'syncedAt' | 'mails' | 'gapAt' | 'watchExpiresAt' | 'topic'>>): void
  /** Undefined: the part works again. */
  tell(part: Part, problem: string | undefined): void
  end(): void
  /** Resolves when the file shows what was last said. */
  written(): Promise<void>
}

export function createStatusBoard(
  { file, account, mode }: { file: string; account: string; mode: string },
  clock: () => number,
): StatusBoard {
  const problems = new Map<Part, string>()
  let rest: Pick<GmailStatus, 'syncedAt' | 'mails' | 'gapAt' | 'watchExpiresAt' | 'topic'> = { mails: 0 }
  let hasEnded = false
  const startedAt = clock()
  let writing: Promise<void> = Promise.resolve()

  const toState = (): GmailStatus['state'] => {
    if (hasEnded) return 'stopped'
    if (problems.has('consent')) return 'reauth-required'
    if (problems.size > 0) return 'failing'
    return rest.syncedAt === undefined ? 'starting' : 'watching'
  }
  const current = (): GmailStatus => ({
    account,
    mode,
    state: toState(),
    problems: [...problems.values()],
    pid: process.pid,
    startedAt,
    ...rest,
  })
  const write = () => {
    // a folder that cannot be written must not end the watcher: it is told where mails are kept
    writing = writing.then(() => writeStatus(file, current())).catch(() => undefined)
  }

  return {
    current,
    note(change) {
      rest = { ...rest, ...change }
      write()
    },
    tell(part, problem) {
      if (problems.get(part) === problem) return
      if (problem === undefined) problems.delete(part)
      else problems.set(part, problem)
      write()
    },
    end() {
      hasEnded = true
      write()
    },
    written: () => writing,
  }
}

async function writeStatus(file: string, status: GmailStatus): Promise<void> {
  await writeStateFile(file, `${JSON.stringify(status)}\n`)
}

/** Undefined where no watcher has ever run here. */
export async function readStatus(file: string): Promise<GmailStatus | undefined> {
  try {
    return GmailStatus.parse(JSON.parse(await readFile(file, 'utf8')))
  } catch {
    return undefined
  }
}

/** How the watcher is, for people and for `gmail status`. */
export function toStatusFile(dir: string): string {
  return join(dir, 'state', 'gmail-status.json')
}
