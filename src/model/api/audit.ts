// An entry of the audit log, as it is stored and shown.
import { z } from 'zod'
import { readonlyList } from './answers.ts'

const { object, string } = z

/**
 * The kinds of actors. token: a token of the configuration, such as gateway.token, or of the store. page: a key of the page, named by the first
 * digits of its SHA-256, or by the token that it was exchanged for. code: a code of `hookloom open`. command: `hookloom` on the machine of the store. signal: a signal to the process.
 * save: a save of a file in the config directory. sender: a sender that gave its secret.
 */
const actorKinds = ['token', 'page', 'code', 'command', 'signal', 'save', 'sender'] as const

/**
 * begun: the act was allowed and begins. A later entry has the outcome of the act, and in `began` the number of this entry. If there is none, the
 * gateway was killed or lost its store before the end, and the act may have happened. refused: nothing was done. failed: the gateway is at fault, and
 * a part may have been done.
 */
const auditOutcomes = ['begun', 'done', 'refused', 'failed'] as const

/** Texts are single printable lines, of 500 characters at most. */
export const AuditFields = object({
  /** 1, 2, 3 and so on, without a gap. */
  number: z.int().positive(),
  /** The time by the clock of the store, in ISO 8601. */
  at: string(),
  /** The gateway that wrote the entry; null for a command. */
  gateway: string().nullable(),
  by: object({ kind: z.enum(actorKinds), name: string() }),
  act: string(),
  /** The target of the act, such as the id of a delivery, the name of a token, or what was paused. */
  target: string().nullable(),
  /** Further details of the act, but never a payload or a secret. */
  details: z.record(string(), string()),
  outcome: z.enum(auditOutcomes),
  /** Why the act was refused, or failed. */
  reason: string().nullable(),
  began: z.int().nullable(),
  /** The hash of the entry before it; null for number 1. */
  previous: string().nullable(),
  /** SHA-256 of this entry without `hash`, in the canonical form of RFC 8785, in hex. */
  hash: string(),
})
export type AuditFields = z.infer<typeof AuditFields>

export const AuditPage = object({
  entries: readonlyList(AuditFields),
  /** `before` of the next older page; null if there is none. */
  next: z.int().nullable(),
})
export type AuditPage = z.infer<typeof AuditPage>

/** The result of a check of all entries. `from`, `to`: the numbers of the first and the last entry that fit; null if there are none. */
export const AuditCheck = object({
  fits: z.boolean(),
  from: z.int().nullable(),
  to: z.int().nullable(),
  /** The hash of the entry `to`. */
  hash: string().nullable(),
  broken: object({ number: z.int(), why: string() }).nullable(),
})
export type AuditCheck = z.infer<typeof AuditCheck>

/** What a save changed. */
export const SaveFields = object({
  /** When the save before it went live; null if that one is no longer remembered. */
  previousAt: string().nullable(),
  /** Whether no later save went live. */
  isLast: z.boolean(),
  changes: readonlyList(object({ what: string(), differ: z.int(), of: z.int(), isWhole: z.boolean() }))
    .nullable()
    .describe(
      'Of `of` recent deliveries, `differ` got another result by the change of a module or of the configuration. `isWhole`: all were compared in time. Null: not compared.',
    ),
  hidden: z.int().describe('The number of changed files that `files` leaves out.'),
  files: readonlyList(
    object({
      name: string().describe('The path below the config directory.'),
      before: string().nullable().describe('Null: the file was new. A long text is cut.'),
      after: string().nullable().describe('Null: the file was deleted.'),
    }),
  ),
})
export type SaveFields = z.infer<typeof SaveFields>
