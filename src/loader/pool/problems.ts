// Why a call came to nothing although its code never threw.
import { Problem } from '../../model/problem.ts'

export function toClosedProblem(): Problem {
  return new Problem('transform-failed', 'The gateway is shutting down.')
}

export function toMemoryProblem(label: string, memoryMb: number): Problem {
  return new Problem('transform-failed', `${label} used more than ${memoryMb} MB.`)
}

export function toExitProblem(label: string, how: string): Problem {
  return new Problem('transform-failed', `${label} ended its worker (${how}).`)
}

export function toGoneProblem(label: string, cause: unknown, memoryMb: number): Problem {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'it crashed'
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return toMemoryProblem(label, memoryMb)
  return new Problem('transform-failed', `${label} ended its worker (${code}).`, { cause })
}

export function toStartProblem(cause: unknown): Problem {
  const why = cause instanceof Error ? cause.message.slice(0, 200) : 'no reason given'
  return new Problem('transform-failed', 'The transform worker does not start.', { frame: why, cause })
}
