// Runs the passes of one source or runner, one after the other, until it is stopped. A failure is a problem that the gateway shows; the next pass is later.
import { toErrorName } from '../../base/exceptions.ts'
import type { Log } from '../../base/log.ts'
import { sleepUnlessAborted } from '../../base/retry.ts'
import { within } from '../../base/time.ts'
import { chooseRetryMs, type PassingParts, SourceFailure } from '../../model/source.ts'
import type { Clock } from '../../store/store.ts'

const usualMs = 60_000
/** How long a pass may go on after its signal is aborted. Then it is left behind, and stores nothing more. */
const endingMs = 10_000

type PassesParts = {
  /** Makes what passes. `signal`: aborted when it stops. `onStored`: called when a source has stored something. `isOver`: it may not store any more. */
  readonly open: (tools: PassTools) => PassingParts
  /** The fields of its lines in the log. */
  readonly fields: object
  readonly label: string
  readonly log: Log
  readonly clock: Clock
}
export type PassTools = {
  readonly signal: AbortSignal
  readonly onStored: () => void
  readonly isOver: () => boolean
}

/** A source whose passes run. */
export type Passes = {
  /** The current problems, one sentence each. */
  problems(): readonly string[]
  /** When a pass last ended well, or something was last stored. */
  lastGoodAt(): number | undefined
  /** Resolves when nothing of the source runs any more, or when it is left behind. The next watch finds what was not stored. */
  stop(): Promise<void>
}

export function startPasses({ open, fields, label, log, clock }: PassesParts): Passes {
  const stopping = new AbortController()
  const { signal } = stopping
  let problem: string | undefined
  let parts: PassingParts | undefined
  let isOver = false
  let lastGoodAt: number | undefined
  const ended = run()
  return {
    problems: () => [...(problem === undefined ? [] : [problem]), ...(parts?.problems?.() ?? [])],
    lastGoodAt: () => lastGoodAt,
    async stop() {
      stopping.abort()
      const isLate = (await within(endingMs, ended)) === undefined
      isOver = true
      if (isLate) log.warn(fields, `${label}: a pass did not end within ${endingMs / 1_000} s of its signal.`)
    },
  }

  async function run(): Promise<true> {
    let failures = 0
    const onStored = () => {
      problem = undefined
      failures = 0
      lastGoodAt = clock()
    }
    while (!signal.aborted) {
      const failure = await runPass(onStored)
      if (signal.aborted) return true
      if (failure === undefined) onStored()
      else report(failure.message)
      const waitMs = failure === undefined ? (parts?.everyMs ?? usualMs) : chooseRetryMs(failure, failures)
      if (failure !== undefined) failures += 1
      await sleepUnlessAborted(waitMs, signal).catch(() => undefined)
    }
    return true
  }

  async function runPass(onStored: () => void): Promise<SourceFailure | undefined> {
    try {
      parts ??= open({ signal, onStored, isOver: () => isOver })
      const result = await parts.pass(signal)
      return typeof result === 'object' ? new SourceFailure(result.problem, result) : undefined
    } catch (thrown) {
      return thrown instanceof SourceFailure
        ? thrown
        : new SourceFailure(`It threw ${toErrorName(thrown)}.`, { cause: thrown })
    }
  }

  function report(what: string): void {
    if (what !== problem) log.error(fields, `${label}: ${what}`)
    problem = what
  }
}
