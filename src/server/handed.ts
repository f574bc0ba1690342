// Secrets that senders hand over in their first, unsigned request. Taken only while the operator has armed the mapping.
import { readFileSync } from 'node:fs'
import { writeStateFile } from '../loader/config-file.ts'
import type { Clock } from '../store/store.ts'

const armedForMs = 600_000
/** A secret and its successor: a sender that rotates hands over a new one while deliveries under the old are on their way. */
const most = 2

export type HandedSecrets = {
  /** The same array as long as nothing changed. */
  of(mappingId: string): readonly string[]
  isArmed(mappingId: string): boolean
  /** Opens the window, in which one secret is taken; gives back its end in milliseconds since the epoch. */
  arm(mappingId: string): number
  /** On disk when it resolves; the window is closed by it. */
  keep(mappingId: string, secret: string): Promise<void>
}

/** `file` holds them, for the owner alone. */
export function createHandedSecrets({ file, clock }: { file: string; clock: Clock }): HandedSecrets {
  const secrets = new Map<string, readonly string[]>(Object.entries(readSecrets(file)))
  const armedUntil = new Map<string, number>()
  const none: readonly string[] = []
  let last: Promise<unknown> = Promise.resolve()

  async function write(mappingId: string, secret: string): Promise<void> {
    const kept = [secret, ...(secrets.get(mappingId) ?? [])].slice(0, most)
    await writeStateFile(file, JSON.stringify(Object.fromEntries([...secrets, [mappingId, kept]])))
    secrets.set(mappingId, kept)
  }

  return {
    of: (mappingId) => secrets.get(mappingId) ?? none,
    isArmed: (mappingId) => clock() < (armedUntil.get(mappingId) ?? 0),
    arm(mappingId) {
      const until = clock() + armedForMs
      armedUntil.set(mappingId, until)
      return until
    },
    keep(mappingId, secret) {
      // at once, so that a second greeting during the write finds the window closed
      armedUntil.delete(mappingId)
      // one write after the other: each holds what the one before has noted
      const mine = last.then(() => write(mappingId, secret))
      last = mine.catch(() => undefined)
      return mine
    },
  }
}

function readSecrets(file: string): Record<string, string[]> {
  try {
    // written by this module alone
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, string[]>
  } catch (error) {
    // a state folder that cannot be opened is no reason to stay down: it is the store's trouble, and told there
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return {}
    throw error
  }
}
