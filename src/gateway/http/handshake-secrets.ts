// Secrets that senders give in their first, unsigned request. One secret is accepted within ten minutes after the operator armed the mapping.
import { readFileSync } from 'node:fs'
import { writeStateFile } from '../../base/files.ts'
import { createSerialQueue } from '../../base/serial.ts'
import { Problem } from '../../core/model/problem.ts'
import type { Clock } from '../../store/store.ts'

export const armedForMs = 600_000
/** The maximum number of secrets of a sender: a secret and its successor. During a rotation, deliveries under the old secret still arrive. */
const maxSecrets = 2

/** `secretsName`: the name of the secrets in the `Identity` of a mapping. */
export type HandshakeSecrets = {
  /** The secrets, in the same array until they change. */
  find(secretsName: string): readonly string[]
  /** Whether a new secret is allowed now. */
  isArmed(secretsName: string): boolean
  /** Allows one new secret for ten minutes. Returns the end of this time in milliseconds since the epoch. */
  arm(secretsName: string): Promise<number>
  /**
   * Stores the one secret that is allowed, and resolves when it is on disk. Throws `unauthorized` if none is allowed: the ten minutes are over, or
   * another secret was accepted first.
   */
  save(secretsName: string, secret: string): Promise<void>
}

/** The secrets of a gateway that keeps them in a file. */
export type SecretFile = HandshakeSecrets & {
  /** Writes a secret, even while no new one is accepted. Resolves when it is on disk. */
  write(secretsName: string, secret: string): Promise<void>
}

/** `file` stores the secrets, readable only by its owner. */
export function createHandshakeSecrets({ file, clock }: { file: string; clock: Clock }): SecretFile {
  const secrets = new Map<string, readonly string[]>(Object.entries(readSecretFile(file)))
  const armedUntil = new Map<string, number>()
  const none: readonly string[] = []
  const inOrder = createSerialQueue()

  // one write after the other, because each is based on the result of the previous one
  const write = (secretsName: string, secret: string) =>
    inOrder(async () => {
      const kept = addSecret(secret, secrets.get(secretsName) ?? [])
      await writeStateFile(file, JSON.stringify(Object.fromEntries([...secrets, [secretsName, kept]])))
      secrets.set(secretsName, kept)
    })

  return {
    find: (secretsName) => secrets.get(secretsName) ?? none,
    isArmed: (secretsName) => clock() < (armedUntil.get(secretsName) ?? 0),
    async arm(secretsName) {
      const until = clock() + armedForMs
      armedUntil.set(secretsName, until)
      return until
    },
    async save(secretsName, secret) {
      if (clock() >= (armedUntil.get(secretsName) ?? 0))
        throw new Problem('unauthorized', 'Another handshake was accepted first.')
      // before the write, so that a second handshake finds the window closed
      armedUntil.delete(secretsName)
      await write(secretsName, secret)
    },
    write,
  }
}

/** The same secrets; `onSaved` is called after one was stored. */
export function withSaveListener(secrets: HandshakeSecrets, onSaved: (secretsName: string) => void): HandshakeSecrets {
  return {
    ...secrets,
    async save(secretsName, secret) {
      await secrets.save(secretsName, secret)
      onSaved(secretsName)
    },
  }
}

export function addSecret(secret: string, before: readonly string[]): readonly string[] {
  return [secret, ...before].slice(0, maxSecrets)
}

function readSecretFile(file: string): Record<string, string[]> {
  try {
    // as: only this module writes the file
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, string[]>
  } catch (error) {
    // no secret was stored; if the folder cannot be used, the store, which is also there, reports this
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return {}
    throw error
  }
}
