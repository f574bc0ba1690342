// Waits for runs through the hook port, as any caller with the hook token can. The exit code shows how they ended.
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { loadConfig } from '../gateway/config/config.ts'
import type { Config } from '../model/config/config.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import {
  callGateway,
  findGatewayAddress,
  findHookToken,
  parseGatewayAnswer,
  toGatewayProblem,
} from './gateway/gateway.ts'
import { findId } from './gateway/ids.ts'
import { readStore } from './gateway/stored.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { cutLine, indent } from './terminal/print.ts'

/** The longest wait that one request asks for. It is shorter than the time limit of `callGateway` and than the usual minute of proxies. */
export const longestAskSeconds = 50
/** The pause before the next request, if the gateway answers at once because it is stopping or too many requests wait. */
const betweenMs = 2_000

const Run = z.looseObject({
  runId: z.string(),
  state: z.string(),
  waits: z.string().nullable(),
  reason: z.string().nullable(),
  reply: z.string().nullish(),
  verdicts: z.array(z.string()).optional(),
  verdict: z.string().nullish(),
})
type Run = z.infer<typeof Run>

const waitingStates: readonly string[] = ['queued', 'running']

/** `id`: of a run, or of a delivery. Of a delivery, the command waits for all runs. `findId` says which forms it may have. */
export async function wait(context: Context, id: string, { timeout }: { timeout: number }): Promise<number> {
  const { config } = loadConfig({ dir: context.dir, env: context.env })
  return waitForRuns(context, config, { runIds: await findRunIds(context, id), seconds: timeout })
}

async function findRunIds(context: Context, given: string): Promise<readonly string[]> {
  try {
    const id = await findId(context, given)
    const record = await readStore(context, undefined, (store) => store.delivery(id))
    // for the id of a run, the store also finds the delivery
    if (record?.deliveryId !== id) return [id]
    const runs = record.jobs.filter(({ planned }) => planned.kind !== 'wake').map((job) => job.id)
    return runs.length === 0 ? [id] : runs
  } catch (error) {
    // a caller needs only the hook token, and perhaps may not read the store
    if (error instanceof Problem && error.code === 'store-unreadable') return [given]
    throw error
  }
}

/**
 * Returns 0 if each run is done with the first of its verdicts, 1 if a run gave another verdict, 70 if a run ended in another way or
 * without a verdict, and 75 if a run has not ended in time. Of several codes, 70 has priority, else the highest.
 */
export async function waitForRuns(
  context: Context,
  config: Config,
  { runIds, seconds }: { runIds: readonly string[]; seconds: number },
): Promise<number> {
  const until = performance.now() + seconds * 1_000
  const codes: number[] = []
  for (const runId of runIds) {
    const run = await withProgress(context, 'Waiting for the run', () => pollRun(context, config, { runId, until }))
    if (context.json) context.printJson(run)
    else printRun(context, run)
    codes.push(toExitCode(run))
  }
  return codes.includes(exitCodes.broken) ? exitCodes.broken : Math.max(exitCodes.ok, ...codes)
}

/** The exit code for a verdict other than the first in the mapping's list. */
const otherVerdict = 1

function toExitCode({ state, verdicts, verdict }: Run): number {
  if (waitingStates.includes(state)) return exitCodes.limited
  if (state !== 'done') return exitCodes.broken
  if (verdicts === undefined) return exitCodes.ok
  if (typeof verdict !== 'string') return exitCodes.broken
  return verdict === verdicts[0] ? exitCodes.ok : otherVerdict
}

/** The run when it ends, or as it is at `until`. */
function pollRun(context: Context, config: Config, { runId, until }: { runId: string; until: number }): Promise<Run> {
  const ask = (leftMs: number) =>
    fetchRun(context, config, { runId, seconds: Math.min(longestAskSeconds, Math.ceil(leftMs / 1_000)) })
  return askUntil(ask, { isOver: ({ state }) => !waitingStates.includes(state), until })
}

/**
 * Asks again and again, until `isOver` is true for an answer, or until a moment of `performance.now()`: then the answer may still be open. Once the
 * gateway has answered, it may restart during the wait.
 */
export async function askUntil<Answer>(
  ask: (leftMs: number) => Promise<Answer>,
  { isOver, until }: { isOver: (answer: Answer) => boolean; until: number },
): Promise<Answer> {
  let last: Answer | undefined
  for (;;) {
    const left = Math.max(0, until - performance.now())
    const asked = performance.now()
    try {
      last = await ask(left)
    } catch (error) {
      const isGone = error instanceof Problem && error.kind === 'unavailable'
      if (!isGone || last === undefined || left === 0) throw error
    }
    if (last !== undefined && (isOver(last) || performance.now() >= until)) return last
    if (performance.now() - asked < betweenMs) await sleep(Math.min(betweenMs, Math.max(0, until - performance.now())))
  }
}

async function fetchRun(
  { dir }: Context,
  config: Config,
  { runId, seconds }: { runId: string; seconds: number },
): Promise<Run> {
  // read the address each time: a gateway that has restarted may have another port
  const { url } = findGatewayAddress(dir, config)
  const headers = { authorization: `Bearer ${findHookToken(config)}`, prefer: `wait=${seconds}` }
  const { status, text } = await callGateway(`${url}/runs/${encodeURIComponent(runId)}`, { method: 'GET', headers })
  if (status !== 200) throw toGatewayProblem(status, text)
  return parseGatewayAnswer(Run, { url, text })
}

function printRun({ print }: Context, { runId, state, waits, reason, reply, verdicts, verdict }: Run): void {
  const why = waits ?? reason ?? (verdicts === undefined ? null : `verdict ${verdict ?? 'none'}`)
  print(`${cutLine(runId, 60)} ${cutLine(state, 40)}${why === null ? '' : `: ${cutLine(why, 1_000)}`}`)
  if (typeof reply === 'string') print(indent(reply))
}
