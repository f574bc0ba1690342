// The keys of a mapping that go unchanged into the jobs of its agent runs. A new key is declared only here: the pipe carries all of them as
// one value, and a replay compares them.
import { z } from 'zod'
import { nonBlank } from './values.ts'

/** The rules of a key besides its type. `findKeyUseIssues` in mapping-rules.ts reports violations. */
type KeyRules = {
  /** A wake ignores the key. Set this only for keys without a default, because a default counts as a value of the operator. */
  readonly onlyForAgent?: true
  /** The key is not a template. */
  readonly isLiteral?: true
}
export const keyRules = z.registry<KeyRules>()

export const SessionMode = z.enum(['isolated', 'persistent'])
export type SessionMode = z.infer<typeof SessionMode>

/** A new key must be optional, because jobs that an earlier version stored do not have it. */
export const JobKeys = z.object({
  sessionMode: SessionMode.default('isolated').describe(
    'isolated: each run starts with an empty history. persistent: a run continues the transcript of its session key. With the session key main it is always persistent.',
  ),
  instructions: nonBlank
    .optional()
    .describe('Your own fixed text for the agent, outside the boundary. It is never a template.'),
})
export type JobKeys = z.infer<typeof JobKeys>
