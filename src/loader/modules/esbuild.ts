// esbuild under a clock. It has one process for all builds, and a build that waits there for a file ends with that process only.
import { type Attempt, attemptWithin } from '../../base/time.ts'

type Esbuild = typeof import('esbuild')

let running = 0
let isStuck = false

/** Never rejects. A build that is late is given up, and its process is replaced once no other build runs in it. */
export async function buildWithin<Result>(
  start: (esbuild: Esbuild) => Promise<Result>,
  limitMs: number,
): Promise<Attempt<Result>> {
  const esbuild = await import('esbuild')
  running += 1
  const ended = await attemptWithin(limitMs, () => start(esbuild))
  running -= 1
  isStuck ||= ended.kind === 'late'
  if (isStuck && running === 0) {
    isStuck = false
    await esbuild.stop()
  }
  return ended
}
