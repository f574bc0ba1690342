// The files of the items that a turn is about: fetched from their source, and written into the workspace, again for each attempt.
import { findErrorCode } from '../../../base/exceptions.ts'
import { abortAfter } from '../../../base/time.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { Runner } from '../../../model/runner.ts'
import { SourceFailure } from '../../../model/source.ts'
import { type ItemFiles, maxFileBytes, maxFiles, maxTurnBytes, type SourceFile } from '../../../model/source-files.ts'
import {
  openRunFolder,
  removeOldRunFolders,
  type RunFolder,
  toFileName,
} from '../../../plugins/runners/shared/run-files.ts'
import type { AgentPlan } from '../plan.ts'
import type { Failure } from '../retry.ts'
import type { JobContext } from '../step.ts'

/** The time limit for the files of one turn. */
const timeoutMs = 300_000
const mib = 1024 * 1024
const tooLarge = `it is over ${maxFileBytes / mib} MiB`
const tooMuch = `the files of a turn have at most ${maxTurnBytes / mib} MiB`
const tooMany = `a turn gets at most ${maxFiles} files`

type Turn = {
  readonly jobId: string
  readonly runner: Runner
  /** Undefined if the turn has none. */
  readonly workspace: string | undefined
}

/** What the prompt says of the files of each message; or why the turn has to wait for them. */
export type TurnFiles =
  | { readonly kind: 'ready'; readonly texts: ReadonlyMap<AgentPlan, string> }
  | { readonly kind: 'aborted' }
  | Failure

export async function fetchFiles(plans: readonly AgentPlan[], turn: Turn, context: JobContext): Promise<TurnFiles> {
  const { clock, lease } = context
  const texts = new Map<AgentPlan, string>()
  if (plans.every(({ files }) => files === undefined)) return { kind: 'ready', texts }
  const limit = abortAfter(timeoutMs, lease.signal)
  try {
    const folder = await openFolder(turn, clock())
    const room: Room = { number: 0, bytes: 0 }
    for (const plan of plans) {
      const { files } = plan
      if (files === undefined) continue
      // one line for all that is over the number: a turn may gather 49 messages of 20 files each
      const fitting = files.files.slice(0, maxFiles - room.number)
      const lines = await writeFiles({ ...files, files: fitting }, { folder, room, limit, context })
      const count = files.others + files.files.length - fitting.length
      const others = count === 0 ? [] : [`${count} more: not kept, because ${tooMany}.`]
      texts.set(plan, ['Files of this message, as paths in your working directory:', ...lines, ...others].join('\n'))
    }
    return { kind: 'ready', texts }
  } catch (thrown) {
    if (lease.signal.aborted) return { kind: 'aborted' }
    // a mailbox that refused the password must not be asked again soon: servers lock accounts
    const retryAfterMs = thrown instanceof SourceFailure ? thrown.retryAfterMs : undefined
    return { kind: 'unavailable', detail: describe(thrown, limit, turn), retryAfterMs }
  }
}

/** The folder for the files; or why the turn can have none. */
async function openFolder({ jobId, runner, workspace }: Turn, now: number): Promise<RunFolder | string> {
  if (runner.readsFiles !== true) return `the runner "${runner.id}" cannot open files`
  if (workspace === undefined) return 'the agent has no workspace'
  await removeOldRunFolders(workspace, now)
  return await openRunFolder(workspace, jobId)
}

/** What the files of the turn have so far. */
type Room = { number: number; bytes: number }

type Writing = {
  readonly folder: RunFolder | string
  readonly room: Room
  readonly limit: AbortSignal
  readonly context: JobContext
}

/** One line for each file. */
async function writeFiles({ files, source, account }: ItemFiles, writing: Writing): Promise<string[]> {
  const { folder, room, limit, context } = writing
  const named = files.map((file) => ({ ...file, name: toFileName(file.name, (room.number += 1)) }))
  const refuseAll = (why: string) => named.map(({ name }) => `${name}: not kept, because ${why}.`)
  if (typeof folder === 'string') return refuseAll(folder)
  const wanted = named.filter((file) => findRefusal(file, room) === undefined)
  const lines = new Map(named.map((file) => [file, `${file.name}: not kept, because ${findRefusal(file, room)}.`]))
  if (wanted.length === 0) return [...lines.values()]
  const refs = wanted.map(({ ref }) => ref)
  const found = context.readSourceFiles({ source, account, refs, maxBytes: maxFileBytes, signal: limit })
  if (typeof found === 'string') return refuseAll(found)
  const contents = untilAborted(found, limit)
  try {
    for (const file of wanted) {
      const { value } = await contents.next()
      lines.set(file, await write(file.name, value, { folder, room }))
    }
  } finally {
    await contents.return(undefined)
  }
  return [...lines.values()]
}

function findRefusal({ bytes = 0 }: Pick<SourceFile, 'bytes'>, room: Room): string | undefined {
  return bytes > maxFileBytes ? tooLarge : room.bytes + bytes > maxTurnBytes ? tooMuch : undefined
}

/** `bytes`: undefined if the source no longer has the file. */
async function write(
  name: string,
  bytes: Uint8Array | undefined,
  { folder, room }: { readonly folder: RunFolder; readonly room: Room },
): Promise<string> {
  if (bytes === undefined) return `${name}: gone, because its source no longer finds it: it was deleted or moved.`
  const refusal = findRefusal({ bytes: bytes.length }, room)
  if (refusal !== undefined) return `${name}: not kept, because ${refusal}.`
  room.bytes += bytes.length
  return `${await folder.write(name, bytes)} (${Math.ceil(bytes.length / 1_000)} kB)`
}

/** The entries, until the signal: the code of a source may ignore it. */
async function* untilAborted<Entry>(
  entries: AsyncIterable<Entry>,
  signal: AbortSignal,
): AsyncGenerator<Entry, undefined, void> {
  const iterator = entries[Symbol.asyncIterator]()
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  aborted.catch(() => undefined)
  try {
    for (;;) {
      signal.throwIfAborted()
      const next = await Promise.race([iterator.next(), aborted])
      if (next.done === true) return undefined
      yield next.value
    }
  } finally {
    // not awaited: it may never end
    void Promise.resolve(iterator.return?.()).catch(() => undefined)
  }
}

/** Without a name of a file, because logs show it. */
function describe(thrown: unknown, limit: AbortSignal, { workspace }: Turn): string {
  const code = findErrorCode(thrown)
  if (code !== undefined && ['EROFS', 'EACCES', 'EPERM', 'ENOSPC', 'EDQUOT'].includes(code))
    return `The files of the message could not be written below ${workspace} (${code}). Give the gateway the right and the room.`
  const start = 'The files of the message could not be fetched.'
  if (limit.aborted) return `${start} They took over ${timeoutMs / 60_000} minutes.`
  if (thrown instanceof SourceFailure || thrown instanceof Problem) return `${start} ${thrown.message}`
  return `${start} The system reports ${code ?? 'an error'}.`
}
