// Writes the audit log. `perform` writes an entry before an act and another one with its outcome, so that no act is missing even if the process
// dies during it.
import { setTimeout as sleep } from 'node:timers/promises'
import { isJsonObject, tryParseJson } from '../../base/json.ts'
import { AuditFields } from '../../model/api/audit.ts'
import type { Log } from '../../base/log.ts'
import { toProblem } from '../../core/model/problem.ts'
import type { Generation } from '../generation/generation.ts'
import type { AuditRow, NewAuditEntry } from '../../store/audit.ts'
import { storeUnavailable } from '../../store/rules.ts'
import type { Store } from '../../store/store.ts'

/** A change that somebody asked for. */
export type AuditedAct = Pick<NewAuditEntry, 'by' | 'act' | 'target' | 'details'>

export type Auditor = {
  /**
   * Performs an act. Throws the error of the act, which is its outcome, and `store-unavailable` if the act cannot be recorded; then the act
   * does not begin.
   */
  perform<Result>(act: AuditedAct, work: () => Promise<Result>): Promise<Result>
  /** Records a change that already happened, or that was refused. Tries again during an outage of the store. Never throws. */
  note(entry: NewAuditEntry): void
  /** Tries once more to store the entries that `note` has not stored yet. */
  stop(): Promise<void>
}

const againMs = 1_000
/** The maximum number of entries that wait during an outage of the store. Without a limit, they would fill the memory. */
const maxWaiting = 1_000

type AuditorParts = {
  readonly store: Pick<Store, 'audit'>
  /** The id of this gateway. */
  readonly gateway: string
  /** Whether entries are logged as info instead of debug. Under development they are debug: the developer who acts sees the result anyway. */
  readonly isLoggedAsInfo: boolean
  readonly log: Log
}

export function createAuditor({ store, gateway, isLoggedAsInfo, log }: AuditorParts): Auditor {
  const waiting: NewAuditEntry[] = []
  const stopping = new AbortController()
  let writing: Promise<void> | undefined

  /** The log line includes the hash: with a copy of the log, anyone can prove that the newest entries were not removed. */
  async function write(entry: NewAuditEntry): Promise<AuditRow> {
    const row = await store.audit({ ...entry, gateway })
    const { act, outcome, by } = entry
    log[isLoggedAsInfo ? 'info' : 'debug'](
      { audit: row.number, hash: row.hash, act, outcome, by: by.name },
      `audit log: ${act}, ${outcome}`,
    )
    return row
  }

  async function writeWaiting(): Promise<void> {
    for (let entry = waiting[0]; entry !== undefined; entry = waiting[0]) {
      try {
        await write(entry)
        waiting.shift()
      } catch {
        if (stopping.signal.aborted) break
        await sleep(againMs, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined)
      }
    }
    // no await since the list was found empty, so that no new entry is left behind
    writing = undefined
  }

  function note(entry: NewAuditEntry): void {
    if (waiting.length >= maxWaiting) {
      const { act, outcome } = entry
      log.error({ act, outcome }, 'an entry of the audit log is lost: the store has not taken any for too long')
      return
    }
    waiting.push(entry)
    writing ??= writeWaiting()
  }

  return {
    async perform(act, work) {
      const { number: began } = await write({ ...act, outcome: 'begun' })
      const end = async (outcome: Pick<NewAuditEntry, 'outcome' | 'reason'>) => {
        const { by, act: name, target } = act
        const entry = { by, act: name, ...(target !== undefined && { target }), ...outcome, began }
        // the answer waits for the entry, but does not fail if the entry cannot be written: the act is done
        await write(entry).catch(() => note(entry))
      }
      try {
        const result = await work()
        await end({ outcome: 'done' })
        return result
      } catch (error) {
        await end(describeFailure(error))
        throw error
      }
    },
    note,
    async stop() {
      stopping.abort()
      await writing
      if (waiting.length > 0) await writeWaiting()
      if (waiting.length > 0)
        log.error({ entries: waiting.length }, 'entries of the audit log are lost: the store does not take them')
    },
  }
}

/** Describes a failure by the message of its Problem, which is written for people: the message of another error may quote anything. */
function describeFailure(error: unknown): Pick<NewAuditEntry, 'outcome' | 'reason'> {
  const { status, message } = toProblem(error)
  return { outcome: status < 500 ? 'refused' : 'failed', reason: message }
}

/** An entry of the log in the form that is shown. Throws `store-unavailable` for a row that no gateway wrote. */
export function readAuditEntry({ number, entry, hash }: AuditRow): AuditFields {
  const fields = tryParseJson(entry)
  const shown = AuditFields.safeParse(isJsonObject(fields) ? { ...fields, hash } : undefined)
  if (shown.success && shown.data.number === number) return shown.data
  throw storeUnavailable(
    `Entry ${number} of the audit log cannot be read: somebody changed it in the store. "hookloom audit --verify" checks the whole log.`,
    5,
  )
}

type AuditNotes = Pick<Auditor, 'note'>

/** The parts of a reload that an entry shows: those of `ReloadReport`, and the saved files. */
type Reload = {
  readonly generation: string
  readonly swapped: boolean
  readonly held: boolean
  readonly files: readonly string[]
  /** Why a part of the save is not live. */
  readonly why: string | undefined
}

/** Notes a save, unless it changed nothing and was valid. */
export function noteReload({ note }: AuditNotes, { generation, swapped, held, files, why }: Reload): void {
  if (!swapped && why === undefined && !held) return
  const by = { kind: 'save', name: files.length === 0 ? 'the config directory' : files.join(', ') } as const
  const reason = held ? 'The save is held back until somebody publishes it.' : (why ?? null)
  note({ by, act: 'reload', target: generation, outcome: swapped ? 'done' : 'refused', reason })
}

/** Notes that a sender gave its secret, and returns the id of the mapping; if the mapping was removed, the name of its secrets. */
export function noteSecret(
  { note }: AuditNotes,
  { mappings }: Pick<Generation, 'mappings'>,
  secretsName: string,
): string {
  const mapping = mappings.find(({ identity }) => identity.secretsName === secretsName)
  const id = mapping?.id ?? secretsName
  const by = { kind: 'sender', name: mapping?.provenSender?.source ?? id } as const
  note({ by, act: 'secret.store', target: id, outcome: 'done' })
  return id
}

/** The gateway does not know who started it, so the program itself is the actor. */
const program = { kind: 'command', name: `process ${process.pid}` } as const

type Started = { readonly generation: string; readonly version: string }

export function noteStart({ note }: AuditNotes, { generation, version }: Started): void {
  note({ by: program, act: 'start', target: generation, details: { version }, outcome: 'done' })
}

/** Notes who ends the program, then calls `run`, which ends it. */
export function noteStop<Ended>({ note }: AuditNotes, signal: string | undefined, run: () => Ended): Ended {
  note({ by: signal === undefined ? program : { kind: 'signal', name: signal }, act: 'stop', outcome: 'done' })
  return run()
}
