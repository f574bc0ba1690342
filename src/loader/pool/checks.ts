// New bundles are tried in the standby thread first, one after the other: what hangs or breaks there harms no call.
import { Problem, toProblemRecord } from '../../model/problem.ts'
import type { ProblemRecord } from '../../model/problem.ts'
import type { BundlePost, FromWorker } from '../worker/messages.ts'
import { toFileLabel } from '../root.ts'
import type { Thread } from './thread.ts'

/** For a thread to start, besides what the bundle needs. */
const startMs = 5000
const answerMs = 100

type Checked = { readonly problems: readonly (ProblemRecord | undefined)[]; readonly changed: string | undefined }
type Lost = { readonly lost: ProblemRecord }
type Current = { readonly thread: Thread; readonly bundle: BundlePost; readonly end: (ended: Checked | Lost) => void }

export type Checks = {
  /** One answer for each export: undefined when it is a function. `changed`: what the bundle changed while it loaded. */
  run(bundle: BundlePost, exports: readonly (string | undefined)[]): Promise<Checked>
  answered(thread: Thread, message: Extract<FromWorker, { kind: 'checked' }>): void
  /** The thread is gone, or goes. */
  lost(thread: Thread, toProblem: (label: string) => ProblemRecord): void
  isBusy(thread: Thread): boolean
  close(toProblem: () => ProblemRecord): void
}

export function createChecks(options: {
  takeChecker: () => Thread | undefined
  limits: () => { readonly timeoutMs: number }
  /** Ends a thread in which something went wrong. */
  discard: (thread: Thread) => void
  toStartProblem: () => Problem
}): Checks {
  const { takeChecker, limits, discard, toStartProblem } = options
  let queue: Promise<unknown> = Promise.resolve()
  let current: Current | undefined

  async function tryOnce(bundle: BundlePost, exports: readonly (string | undefined)[]): Promise<Checked | Lost> {
    const thread = takeChecker()
    if (thread === undefined) return { lost: toProblemRecord(toStartProblem()) }
    const { timeoutMs } = limits()
    let timer: NodeJS.Timeout | undefined
    const ended = await new Promise<Checked | Lost>((end) => {
      current = { thread, bundle, end }
      const late = new Problem('transform-load-failed', `${toFileLabel(bundle)} was not loaded within ${timeoutMs} ms.`)
      const answer = { problems: exports.map(() => toProblemRecord(late)), changed: undefined }
      timer = setTimeout(end, timeoutMs + (thread.isReady() ? answerMs : startMs), answer)
      thread.load(bundle)
      thread.check(bundle.id, exports)
    })
    clearTimeout(timer)
    current = undefined
    // what it left behind must not be met by the next one
    if (!isClean(ended)) discard(thread)
    return ended
  }

  async function run(bundle: BundlePost, exports: readonly (string | undefined)[]): Promise<Checked> {
    let ended = await tryOnce(bundle, exports)
    // it may have been the timer of an earlier module
    if ('lost' in ended) ended = await tryOnce(bundle, exports)
    if (!('lost' in ended)) return ended
    const { lost } = ended
    return { problems: exports.map(() => lost), changed: undefined }
  }

  return {
    run: (bundle, exports) => {
      const result = queue.then(() => run(bundle, exports))
      queue = result
      return result
    },
    answered: (thread, { bundle, problems, changed }) => {
      if (current?.thread === thread && current.bundle.id === bundle) current.end({ problems, changed })
    },
    lost: (thread, toProblem) => {
      if (current?.thread === thread) current.end({ lost: toProblem(toFileLabel(current.bundle)) })
    },
    isBusy: (thread) => current?.thread === thread,
    close: (toProblem) => current?.end({ lost: toProblem() }),
  }
}

function isClean(ended: Checked | Lost): boolean {
  return !('lost' in ended) && ended.changed === undefined && ended.problems.every((problem) => problem === undefined)
}
