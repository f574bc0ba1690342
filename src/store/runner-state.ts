// The durable values of a runner. Each is a cursor whose value begins with the moment at which it expires.
import type { RunnerState, RunnerStateWrite, StoredValue } from '../model/runner.ts'
import { type CursorMove, runnerPrefix } from './cursors.ts'
import type { Store } from './store.ts'

/** Stands between the parts of the name of a cursor: neither part has it. */
const separator = '\u001f'
const maxTextBytes = 1_048_576
/** An expired value, which a sweep removes. */
const deletedValue = '0 '

type StateParts = {
  readonly store: Pick<Store, 'cursor' | 'cursors' | 'appendAll'>
  /** The name of the section. */
  readonly id: string
  readonly clock: () => number
}

export function createRunnerState({ store, id, clock }: StateParts): RunnerState {
  const prefix = `${runnerPrefix}${id}${separator}`

  const toLive = (stored: string | undefined): StoredValue | undefined => {
    const found = stored === undefined ? undefined : parseStored(stored)
    return found === undefined || found.until <= clock() ? undefined : found
  }

  /** Undefined if another value than `from` is there. */
  async function plan({ key, from, to }: RunnerStateWrite): Promise<CursorMove | undefined> {
    const name = `${prefix}${checkKey(key)}`
    const next = to === undefined ? deletedValue : formatStored(to)
    if (from !== undefined) return { name, from: formatStored(from), to: next }
    // a value that expired is there until the next sweep
    const left = await store.cursor(name)
    return toLive(left) === undefined ? { name, from: left, to: next } : undefined
  }

  return {
    read: async (key) => toLive(await store.cursor(`${prefix}${checkKey(key)}`)),
    async list(start) {
      const found = await store.cursors(`${prefix}${start}`)
      return found.flatMap(({ name, value }) => {
        const live = toLive(value)
        return live === undefined ? [] : [{ key: name.slice(prefix.length), ...live }]
      })
    },
    async write(changes) {
      const moves: CursorMove[] = []
      for (const change of changes) {
        const move = await plan(change)
        if (move === undefined) return false
        moves.push(move)
      }
      return (await store.appendAll([], moves)) !== 'moved'
    },
  }
}

function checkKey(key: string): string {
  if (/^[^\p{Cc}]{1,200}$/u.test(key)) return key
  throw new TypeError('A key of the state of a runner has 1 to 200 characters, and no control characters.')
}

function formatStored({ text, until }: StoredValue): string {
  if (!Number.isSafeInteger(until) || until < 0) throw new TypeError('`until` is a moment in whole milliseconds.')
  if (Buffer.byteLength(text) > maxTextBytes) throw new TypeError('A value of a runner has at most 1 MiB.')
  return `${until} ${text}`
}

function parseStored(stored: string): StoredValue | undefined {
  const space = stored.indexOf(' ')
  const until = Number(stored.slice(0, space))
  return space > 0 && Number.isSafeInteger(until) ? { until, text: stored.slice(space + 1) } : undefined
}
