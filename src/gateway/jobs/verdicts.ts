// Reads the verdict of a run from its reply, and asks the agent once more if the reply has none.
import { addUsages, type RunVerdict, type Usage } from '../../model/job.ts'
import type { RunIO, Runner, RunRequest, RunResult } from '../../model/runner.ts'
import { matchVerdict, readLastLineVerdict } from '../../model/verdict.ts'
import { withDeadline } from '../../base/time.ts'
import { buildRepairPrompt } from './prompt.ts'
import type { JobContext } from './step.ts'

type Asking = Pick<JobContext, 'clock' | 'newBoundaryId'>

/** A runner that adds the verdict to a reply if the request asks for one. The second question never fails a turn that has a reply. */
export function createVerdictRunner(runner: Runner, asking: Asking): Runner {
  return {
    id: runner.id,
    async run(request, io) {
      const { verdicts } = request
      const first = await runner.run(request, io)
      // no model was asked
      if (verdicts === undefined || first.status !== 'ok' || first.simulated === true) return first
      const given = readVerdict(first, verdicts)
      if (given.word !== null) return { ...first, verdict: given }
      io.log('The reply has no verdict. The agent is asked once more.')
      const second = await askAgain(runner, { request, io, reply: first.text }, asking)
      const usage = addUsages([...listUsage(first), ...listUsage(second)])
      const word = second?.status === 'ok' ? readVerdict(second, verdicts) : { word: null }
      return { ...first, ...(usage && { usage }), verdict: { ...word, isRepaired: true } }
    },
  }
}

/** The second question has half of the time that is left, so that a slow answer does not exceed the time limit of the turn and lose the reply. */
async function askAgain(
  runner: Runner,
  { request, io, reply }: { request: RunRequest; io: RunIO; reply: string },
  { clock, newBoundaryId }: Asking,
): Promise<RunResult | undefined> {
  const prompt = buildRepairPrompt(reply, request.verdicts ?? [], newBoundaryId)
  const alone = { system: undefined, workspace: undefined, history: [], state: undefined, message: '' }
  const ms = Math.max(0, Math.floor((request.deadline - clock()) / 2))
  const ended = await withDeadline({ outer: io.signal, ms }, (signal) =>
    runner.run({ ...request, ...alone, prompt }, { ...io, signal }).catch(() => undefined),
  )
  const result = ended.kind === 'finished' ? ended.value : undefined
  if (result?.status !== 'ok') io.log(`The second question failed${describeFailure(result)}`)
  return result
}

function listUsage(result: RunResult | undefined): Usage[] {
  return result !== undefined && 'usage' in result && result.usage !== undefined ? [result.usage] : []
}

function describeFailure(result: RunResult | undefined): string {
  return result === undefined || !('quotes' in result) || result.quotes === true ? '.' : `: ${result.detail}`
}

/** Reads the verdict of a reply. The last line counts if the runner found no valid verdict in another form. */
function readVerdict(
  { text, verdict }: { readonly text: string; readonly verdict?: RunVerdict },
  words: readonly string[],
): RunVerdict {
  const word = matchVerdict(verdict?.word, words)
  if (word !== undefined) return { ...verdict, word }
  const last = readLastLineVerdict(text, words)
  return last === undefined ? { word: null } : { word: last, form: 'last-line' }
}
