// Tests each new bundle in the standby thread before a thread that serves loads it, one bundle after the other. So a bundle that hangs or breaks
// affects no call.
import { createSerialQueue } from '../../../base/serial.ts'
import { toProblemRecord } from '../../model/problem.ts'
import type { Problem, ProblemRecord } from '../../model/problem.ts'
import { buildLoadTimeoutProblem } from '../worker/call.ts'
import type { BundlePost, FromWorker } from '../worker/messages.ts'
import { parseSchemaPaths } from '../worker/schema-paths.ts'
import { toFileLabel } from '../root.ts'
import type { Thread } from './thread.ts'

/** The time for a thread to start, in addition to the time for the bundle. */
const startMs = 5000
const answerMs = 100

type CheckResult = {
  readonly problems: readonly (ProblemRecord | undefined)[]
  readonly reads: ReturnType<typeof parseSchemaPaths>
  readonly changed: string | undefined
}
/** The thread ended before it answered, or could not start. */
type LostCheck = { readonly lost: ProblemRecord }
type CurrentCheck = {
  readonly thread: Thread
  readonly bundle: BundlePost
  readonly end: (ended: CheckResult | LostCheck) => void
}

export type Checks = {
  /**
   * `problems`: one for each export; undefined if it is a function. `reads`: the fields that the schema of each export names. `changed`: the
   * global that the bundle changed while it loaded.
   */
  run(bundle: BundlePost, exports: readonly (string | undefined)[]): Promise<CheckResult>
  complete(thread: Thread, message: Extract<FromWorker, { kind: 'checked' }>): void
  /** The thread has ended, or is being terminated. */
  fail(thread: Thread, buildProblem: (label: string) => ProblemRecord): void
  isBusy(thread: Thread): boolean
  close(buildProblem: () => ProblemRecord): void
}

export function createChecks(options: {
  takeChecker: () => Thread | undefined
  timeoutMs: number
  /** Terminates a thread whose bundle failed its check or changed a global. */
  discard: (thread: Thread) => void
  buildStartProblem: () => Problem
}): Checks {
  const { takeChecker, timeoutMs, discard, buildStartProblem } = options
  const inOrder = createSerialQueue()
  let current: CurrentCheck | undefined

  async function tryOnce(
    bundle: BundlePost,
    exports: readonly (string | undefined)[],
  ): Promise<CheckResult | LostCheck> {
    const thread = takeChecker()
    if (thread === undefined) return { lost: toProblemRecord(buildStartProblem()) }
    let timer: NodeJS.Timeout | undefined
    const ended = await new Promise<CheckResult | LostCheck>((end) => {
      current = { thread, bundle, end }
      const late = buildLoadTimeoutProblem(toFileLabel(bundle), timeoutMs)
      const answer = { problems: exports.map(() => toProblemRecord(late)), reads: [], changed: undefined }
      timer = setTimeout(end, timeoutMs + (thread.isReady() ? answerMs : startMs), answer)
      thread.load(bundle)
      thread.check(bundle.id, exports)
    })
    clearTimeout(timer)
    current = undefined
    // its side effects must not affect the next bundle
    if (!isClean(ended)) discard(thread)
    return ended
  }

  async function run(bundle: BundlePost, exports: readonly (string | undefined)[]): Promise<CheckResult> {
    let ended = await tryOnce(bundle, exports)
    // a timer of an earlier module may have ended the thread
    if ('lost' in ended) ended = await tryOnce(bundle, exports)
    if (!('lost' in ended)) return ended
    const { lost } = ended
    return { problems: exports.map(() => lost), reads: [], changed: undefined }
  }

  return {
    run: (bundle, exports) => inOrder(() => run(bundle, exports)),
    complete: (thread, { bundle, problems, reads, changed }) => {
      if (current?.thread === thread && current.bundle.id === bundle) {
        current.end({ problems, reads: parseSchemaPaths(reads, problems.length), changed })
      }
    },
    fail: (thread, buildProblem) => {
      if (current?.thread === thread) current.end({ lost: buildProblem(toFileLabel(current.bundle)) })
    },
    isBusy: (thread) => current?.thread === thread,
    close: (buildProblem) => current?.end({ lost: buildProblem() }),
  }
}

function isClean(ended: CheckResult | LostCheck): boolean {
  return !('lost' in ended) && ended.changed === undefined && ended.problems.every((problem) => problem === undefined)
}
