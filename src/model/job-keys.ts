// The keys of a mapping that go unchanged into the jobs of its agent runs. A new one is declared here and nowhere else: the pipe
// carries all of them as one value, and a replay compares them.
import { z } from 'zod'
import { nonBlank } from './values.ts'

/** What is true of a key besides its type. `findKeyUseIssues` of mapping-rules.ts reports it. */
type KeyRules = {
  /** A wake does not use it. Only for a key without a default, which counts as set. */
  readonly onlyForAgent?: true
  /** It is not a template. */
  readonly isLiteral?: true
}
export const keyRules = z.registry<KeyRules>()

export const SessionMode = z.enum(['isolated', 'persistent'])
export type SessionMode = z.infer<typeof SessionMode>

/** Jobs that were stored by an earlier version do not have a key that is new: make it optional. */
export const JobKeys = z.object({
  sessionMode: SessionMode.default('isolated').describe(
    'isolated: each run starts with an empty history. persistent: a run continues the transcript of its session key. With the session key main it is always persistent.',
  ),
  instructions: nonBlank
    .optional()
    .describe('Your own fixed text for the agent, outside the boundary. It is never a template.'),
})
export type JobKeys = z.infer<typeof JobKeys>
