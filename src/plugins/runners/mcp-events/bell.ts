// Wakes one that waits for work. A promise that stays open for days would keep a reaction of each wait.
import { withDeadline } from '../shared/kit.ts'

export type Bell = {
  ring(): void
  /** Resolves at the next ring, after `ms`, or when the signal is aborted. A ring since the last wait counts too. */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

export function createBell(): Bell {
  let isRung = false
  let wake = () => {}
  return {
    ring() {
      isRung = true
      wake()
    },
    async wait(ms, signal) {
      if (!isRung)
        await withDeadline({ outer: signal, ms }, () => {
          return new Promise<void>((resolve) => {
            wake = resolve
          })
        })
      isRung = false
    },
  }
}
