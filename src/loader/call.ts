// One call of a transform: whatever it does short of not giving the thread back, the outcome is a value.
import { Problem, toProblemRecord } from '../model/problem.ts'
import type { TransformInput, TransformOutcome } from '../model/transform.ts'
import type { UncheckedFunction } from './evaluate.ts'
import type { Locate } from './locate.ts'
import { NotPlain, toPlainData } from './plain.ts'
import { toThrownReport } from './thrown.ts'

const logLines = 100
const logLineLength = 500

export type Call = {
  readonly label: string
  readonly call: UncheckedFunction
  readonly locate: Locate
  readonly timeoutMs: number
}

/** Calls the function with a copy of the input; what it does to the copy stays in the copy. Never rejects. */
export async function callTransform(transform: Call, input: TransformInput): Promise<TransformOutcome> {
  const lines: string[] = []
  const log = (message: unknown) => {
    if (lines.length < logLines) lines.push(toLine(message))
  }
  try {
    const value = await withinTime(transform, () => transform.call(structuredClone(input), { log }))
    return { kind: 'returned', value: toResult(transform.label, value), log: [...lines] }
  } catch (error) {
    const problem = error instanceof Problem ? error : toFailure(transform, error)
    return { kind: 'failed', problem: toProblemRecord(problem), log: [...lines] }
  }
}

/** Ends the waiting, not the work: a thread that loops is the pool's to end. */
async function withinTime({ label, timeoutMs }: Call, start: () => unknown): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const problem = new Problem('transform-timeout', `${label} did not end within ${timeoutMs} ms.`)
    timer = setTimeout(reject, timeoutMs, problem)
  })
  try {
    return await Promise.race([new Promise((resolve) => resolve(start())), late])
  } finally {
    clearTimeout(timer)
  }
}

function toResult(label: string, value: unknown): unknown {
  if (value === undefined) {
    const advice = "return {} to keep the mapping's action, null to skip"
    throw new Problem('transform-result-invalid', `${label} returned nothing: ${advice}.`)
  }
  try {
    return toPlainData(value)
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error
    throw new Problem('transform-result-invalid', `${label} must return plain JSON data: ${error.message}.`)
  }
}

function toFailure({ label, locate }: Call, thrown: unknown): Problem {
  const { what, at, frame } = toThrownReport(thrown, locate)
  return new Problem('transform-failed', `${label} threw ${what}${at}.`, { frame })
}

function toLine(message: unknown): string {
  try {
    return String(message).slice(0, logLineLength)
  } catch {
    return 'a log line that is no text'
  }
}
