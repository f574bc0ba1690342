// One call of a transform: whatever it does short of not giving the thread back, the outcome is a value.
import type { JsonValue } from '../model/json.ts'
import { parseBody } from '../model/parse-body.ts'
import { Problem, toProblem, toProblemRecord } from '../model/problem.ts'
import type { TransformCall, TransformOutcome } from '../model/transform.ts'
import type { UncheckedFunction } from './evaluate.ts'
import type { Locate } from './locate.ts'
import { NotPlain, toPlainData } from './plain.ts'
import { toThrownReport } from './thrown.ts'
import { withinTime } from './time.ts'
import type { Ended } from './time.ts'

const logLines = 100
const logLineLength = 500

export type Call = {
  readonly label: string
  readonly call: UncheckedFunction
  readonly locate: Locate
  readonly timeoutMs: number
}

/** Calls the function with a payload parsed for it alone. Never rejects. */
export async function callTransform(
  transform: Call,
  { head, body, contentType }: TransformCall,
): Promise<TransformOutcome> {
  let payload: JsonValue
  try {
    payload = parseBody(body, contentType, { forms: true })
  } catch (error) {
    return { kind: 'refused', problem: toProblemRecord(toProblem(error)), log: [] }
  }
  const lines: string[] = []
  const log = (message: unknown) => {
    if (lines.length < logLines) lines.push(toLine(message))
  }
  const ended = await withinTime(
    () => transform.call({ ...structuredClone(head), payload }, { log }),
    transform.timeoutMs,
  )
  try {
    return { kind: 'returned', value: toResult(transform, ended), log: [...lines] }
  } catch (error) {
    return { kind: 'failed', problem: toProblemRecord(toProblem(error)), log: [...lines] }
  }
}

/** Plain data, or a thrown Problem. */
function toResult({ label, locate, timeoutMs }: Call, ended: Ended): JsonValue {
  if (ended.kind === 'late') throw new Problem('transform-timeout', `${label} did not end within ${timeoutMs} ms.`)
  if (ended.kind === 'threw') {
    const { what, at, frame } = toThrownReport(ended.thrown, locate)
    throw new Problem('transform-failed', `${label} threw ${what}${at}.`, { frame })
  }
  if (ended.value === undefined) {
    const advice = "return {} to keep the mapping's action, null to skip"
    throw new Problem('transform-result-invalid', `${label} returned nothing: ${advice}.`)
  }
  try {
    return toPlainData(ended.value)
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error
    throw new Problem('transform-result-invalid', `${label} must return plain JSON data: ${error.message}.`)
  }
}

function toLine(message: unknown): string {
  try {
    return String(message).slice(0, logLineLength)
  } catch {
    return 'a log line that is no text'
  }
}
