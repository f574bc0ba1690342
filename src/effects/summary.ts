// What the main session of an agent hears of a hook run: always one event, whether the run went well or not.
import type { Job, Step } from '../model/job.ts'
import { toLine } from '../pipeline/boundary.ts'
import type { NewEvent } from '../store/store.ts'
import { cut } from '../base/text.ts'
import { toSource } from './plan.ts'
import type { AgentPlan } from './prompt.ts'

/** The session that hears of everything. */
export const mainSessionKey = 'main'

/** Characters of a reply or a reason that a summary keeps. */
const maxSummaryChars = 2_000

export type RunEnd = { status: 'ok' | 'forwarded' | 'error' | 'timeout'; text: string }

/** The human-readable name of a run, on one line: the action's, else the hook's path. Outside text. */
export function toRunName({ action, origin }: AgentPlan): string {
  return toLine(action.name ?? origin.hook)
}

/** The recorded run of a job. */
export function toRunStep({ steps }: Pick<Job, 'steps'>): Step | undefined {
  return steps.find((step) => step.name === 'run')
}

/** How the recorded run of a job ended. */
export function toRunEnd(job: Pick<Job, 'steps'>): RunEnd {
  const run = toRunStep(job)
  return run?.state === 'forwarded'
    ? { status: 'forwarded', text: run.detail ?? '' }
    : { status: 'ok', text: run?.result ?? '' }
}

/** `Hook <name>: <reply>`, or `Hook <name> (error|timeout|forwarded): <reason>`; trusted as the run was. */
export function toSummary(planned: AgentPlan, { status, text }: RunEnd): NewEvent {
  const mark = status === 'ok' ? '' : ` (${status})`
  const summary = cut(text.trim(), maxSummaryChars) || '(empty reply)'
  return {
    agentId: planned.agentId,
    sessionKey: mainSessionKey,
    text: `Hook ${toRunName(planned)}${mark}: ${summary}`,
    source: toSource(planned),
    trusted: planned.action.allowUnsafeExternalContent,
    wakes: planned.action.wakeMode === 'now',
  }
}
