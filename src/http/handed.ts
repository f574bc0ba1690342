// Secrets that senders give in their first, unsigned request. One is accepted only while the operator has armed the mapping.
import { readFileSync } from 'node:fs'
import { writeStateFile } from '../base/files.ts'
import { createSerial } from '../base/serial.ts'
import type { Clock } from '../store/store.ts'

export const armedForMs = 600_000
/** A secret and its successor: during a rotation, deliveries under the old secret are still on their way. */
const most = 2

/** `handedAs`: the name of a mapping here, see `Identity`. */
export type HandedSecrets = {
  /** The same array until it changes. */
  of(handedAs: string): readonly string[]
  isArmed(handedAs: string): boolean
  /** Opens a window in which one secret is accepted. Returns its end in milliseconds since the epoch. */
  arm(handedAs: string): Promise<number>
  /** Resolves when the secret is on disk. Closes the window. */
  keep(handedAs: string, secret: string): Promise<void>
}

/** `file` stores the secrets, readable only by its owner. */
export function createHandedSecrets({ file, clock }: { file: string; clock: Clock }): HandedSecrets {
  const secrets = new Map<string, readonly string[]>(Object.entries(readSecretFile(file)))
  const armedUntil = new Map<string, number>()
  const none: readonly string[] = []
  const inOrder = createSerial()

  async function write(handedAs: string, secret: string): Promise<void> {
    const kept = addSecret(secret, secrets.get(handedAs) ?? [])
    await writeStateFile(file, JSON.stringify(Object.fromEntries([...secrets, [handedAs, kept]])))
    secrets.set(handedAs, kept)
  }

  return {
    of: (handedAs) => secrets.get(handedAs) ?? none,
    isArmed: (handedAs) => clock() < (armedUntil.get(handedAs) ?? 0),
    async arm(handedAs) {
      const until = clock() + armedForMs
      armedUntil.set(handedAs, until)
      return until
    },
    keep(handedAs, secret) {
      // before the write, so that a second handshake finds the window closed
      armedUntil.delete(handedAs)
      // one write after the other: each contains the result of the one before
      return inOrder(() => write(handedAs, secret))
    },
  }
}

/** The same secrets. `handedOver` is called after one was kept. */
export function withKeepNotice(secrets: HandedSecrets, handedOver: (handedAs: string) => void): HandedSecrets {
  return {
    ...secrets,
    async keep(handedAs, secret) {
      await secrets.keep(handedAs, secret)
      handedOver(handedAs)
    },
  }
}

export function addSecret(secret: string, before: readonly string[]): readonly string[] {
  return [secret, ...before].slice(0, most)
}

function readSecretFile(file: string): Record<string, string[]> {
  try {
    // as: only this module writes the file
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, string[]>
  } catch (error) {
    // the store is in this folder too, and reports that it cannot be opened
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return {}
    throw error
  }
}
