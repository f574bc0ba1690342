// Measures which code of a bundle ran since the last call of `take`, with V8's precise coverage of this thread. Threads that serve never start it.
import { type Debugger, type Profiler, Session } from 'node:inspector'
import type { BundlePost } from './messages.ts'

export type CoverageProbe = {
  add(bundle: Pick<BundlePost, 'id' | 'file' | 'code'>): void
  /** The parts of the code that ran since the last call: start and end of each, as offsets in UTF-16 units. */
  take(bundle: number): number[]
}

export function startCoverage(): CoverageProbe {
  const session = new Session()
  session.connect()
  const bundles = new Map<number, Pick<BundlePost, 'file' | 'code'>>()
  /** Where the code begins in a script, because the evaluation wraps it; -1 if the script is other code. */
  const starts = new Map<string, number>()

  session.post('Profiler.enable')
  session.post('Debugger.enable')
  // a `debugger` statement would stop the thread
  session.post('Debugger.setSkipAllPauses', { skip: true })
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

  function findStart(scriptId: string, code: string): number {
    const known = starts.get(scriptId)
    if (known !== undefined) return known
    let start = -1
    // the callback runs before `post` returns, because the session is in the same thread
    session.post('Debugger.getScriptSource', { scriptId }, (_error, answer?: Debugger.GetScriptSourceReturnType) => {
      start = answer?.scriptSource.indexOf(code) ?? -1
    })
    starts.set(scriptId, start)
    return start
  }

  return {
    add: ({ id, file, code }) => void bundles.set(id, { file, code }),
    take(id) {
      const { file, code } = bundles.get(id) ?? { file: '', code: '' }
      let scripts: Profiler.ScriptCoverage[] = []
      session.post('Profiler.takePreciseCoverage', (_error, answer?: Profiler.TakePreciseCoverageReturnType) => {
        scripts = answer?.result ?? []
      })
      const covered = new Uint8Array(code.length)
      for (const { url, scriptId, functions } of scripts) {
        const start = url === file || url === `file://${file}` ? findStart(scriptId, code) : -1
        if (start >= 0) paint(covered, functions, start)
      }
      return toParts(covered)
    },
  }
}

/** Ranges are nested, and inner ranges replace outer ones, so the outer ones are painted first. */
function paint(covered: Uint8Array, functions: readonly Profiler.FunctionCoverage[], start: number): void {
  const ranges = functions
    .flatMap(({ ranges: own }) => own)
    .toSorted((one, other) => one.startOffset - other.startOffset || other.endOffset - one.endOffset)
  for (const { startOffset, endOffset, count } of ranges) {
    covered.fill(count > 0 ? 1 : 0, Math.max(0, startOffset - start), Math.max(0, endOffset - start))
  }
}

function toParts(covered: Uint8Array): number[] {
  const parts: number[] = []
  for (let at = covered.indexOf(1); at >= 0;) {
    const end = covered.indexOf(0, at)
    parts.push(at, end < 0 ? covered.length : end)
    at = end < 0 ? -1 : covered.indexOf(1, end)
  }
  return parts
}
