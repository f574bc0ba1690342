// Runs the passes of the runners that have work of their own. They follow the configuration and the duty of this gateway.
import type { Log } from '../../base/log.ts'
import { createSerialQueue } from '../../base/serial.ts'
import type { Runner } from '../../model/runner.ts'
import type { Duty } from '../../store/named-leases.ts'
import type { Clock } from '../../store/store.ts'
import { type Passes, startPasses } from './passes.ts'
import type { WatchedSource } from './sources.ts'

type RunnerPassesParts = {
  /** The runners of the live configuration. A new configuration has new ones. */
  readonly runners: () => readonly Runner[]
  /** Only the gateway with this duty runs the passes. */
  readonly duty: Duty
  readonly clock: Clock
  readonly log: Log
}

export function createRunnerPasses({ runners, duty, clock, log }: RunnerPassesParts) {
  const running = new Map<Runner, Passes>()
  const inTurn = createSerialQueue()
  let isStopping = false

  async function follow(): Promise<void> {
    const wanted = isStopping || !duty.isHeld() ? [] : runners()
    const ended = [...running].filter(([runner]) => !wanted.includes(runner))
    for (const [runner] of ended) running.delete(runner)
    await Promise.all(ended.map(([, passes]) => passes.stop()))
    for (const runner of wanted) {
      const { id, passes: parts } = runner
      if (parts === undefined || running.has(runner)) continue
      const passes = startPasses({ open: () => parts, fields: { runner: id }, label: `runners.${id}`, log, clock })
      running.set(runner, passes)
    }
  }

  return {
    /** Runs what the live configuration has, if this gateway has the duty; otherwise nothing. */
    apply: () => void inTurn(follow),
    /** What runs here, with its problems. */
    list: (): Pick<WatchedSource, 'label' | 'problems'>[] =>
      [...running].map(([{ id }, passes]) => ({ label: `runners.${id}`, problems: passes.problems() })),
    stop(): Promise<void> {
      isStopping = true
      return inTurn(follow)
    },
  }
}
