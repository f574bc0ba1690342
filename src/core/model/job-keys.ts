// The keys of a mapping that go unchanged into the jobs of its agent runs. A new key is declared only here: the pipe carries all of them as
// one value, and a replay compares them.
import { z } from 'zod'
import { nonBlank } from './values.ts'

/** The rules of a key besides its type. `findKeyUseIssues` in mapping-rules.ts reports violations. */
type KeyRules = {
  /** The actions `wake` and `deliver` ignore the key. Set this only for keys without a default, because a default counts as a value of the operator. */
  readonly onlyForAgent?: true
  /** The action `deliver` uses the key too. */
  readonly alsoForDeliver?: true
  /** The key is not a template. */
  readonly isLiteral?: true
}
export const keyRules = z.registry<KeyRules>()

/** The budgets of an agent or of a mapping. */
export const BudgetNames = z.array(nonBlank).max(8)

export const SessionMode = z.enum(['isolated', 'persistent'])
export type SessionMode = z.infer<typeof SessionMode>

/** Two words must not differ only in case, because the answer of an agent is compared with them without regard to case. */
const Verdicts = z
  .array(
    z
      .string()
      .regex(
        /^[\p{L}\p{N}]([\p{L}\p{N}_-]{0,38}[\p{L}\p{N}])?$/u,
        'must be one word of at most 40 letters and digits, with "-" or "_" only inside',
      ),
  )
  .min(2)
  .max(10)
  .refine((words) => new Set(words.map((word) => word.toLowerCase())).size === words.length, 'must not repeat a word')

/** A new key must be optional, because jobs that an earlier version stored do not have it. */
export const JobKeys = z.object({
  sessionMode: SessionMode.default('isolated').describe(
    'isolated: each run starts with an empty history. persistent: a run continues the transcript of its session key. A run that names the session key main is always persistent.',
  ),
  instructions: nonBlank
    .optional()
    .describe('Your own fixed text for the agent, outside the boundary. It is never a template.'),
  result: z
    .enum(['text'])
    .optional()
    .describe(
      'text: the token that started a run can read its reply. Without it, the token sees only the state of the run.',
    )
    .register(keyRules, { onlyForAgent: true }),
  verdicts: Verdicts.optional()
    .describe(
      'The verdicts that a run can give, such as ["pass", "fail"]. A run gives one of them. The first means success: commands exit with 0 for it, and with 1 for any other. Any other answer of the agent is not a verdict.',
    )
    .register(keyRules, { onlyForAgent: true, isLiteral: true }),
  status: nonBlank
    .max(100)
    .optional()
    .describe(
      'Name of a commit status, such as "review". The gateway sets it to pending, and at the end of the run to its result. Only for requests of GitHub or GitLab that `verify` proves, and whose payload names a commit. See [Channels](../../plugins/channels/README.md#commit-status).',
    )
    .register(keyRules, { onlyForAgent: true, isLiteral: true }),
  callback: nonBlank
    .optional()
    .describe(
      'Name of an endpoint in `channels.webhook.endpoints`. The end of the run is posted there as a signed webhook, `run.done` or `run.dead`. See [Callbacks](../../gateway/jobs/README.md#callbacks).',
    )
    .register(keyRules, { onlyForAgent: true, isLiteral: true }),
  budgets: BudgetNames.optional()
    .describe('Names in `budgets` that limit what the runs of the mapping cost, together with those of the agent.')
    .register(keyRules, { onlyForAgent: true, isLiteral: true }),
})
export type JobKeys = z.infer<typeof JobKeys>
