// The stage of a row: a gateway, two processes that send, and the ledger at the end.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Child, startChild } from '../child.ts'
import type { LoadJob, LoadResult } from '../load.ts'
import type { ProbeOptions } from '../probe.ts'
import type { Figures } from '../probes.ts'
import { token } from '../run.ts'
import { compareLedger, readReceipts, readStoredIds } from './ledger.ts'
import { type Operated, type OperatedOptions, startOperated } from './operated.ts'

type Sent = Partial<LoadJob> & Pick<LoadJob, 'seconds'>

export type Stage = {
  readonly gateway: Operated
  readonly dir: string
  /** Sends from the first process. Default: 16 connections with bodies of 1 kB to the wake hook. */
  send(job: Sent): Promise<LoadResult>
  /** Sends from another process, at the same time. */
  sendBeside(job: Sent): Promise<LoadResult>
}

export type RowOptions = Pick<ProbeOptions, 'folder' | 'built' | 'seconds'>

const warmUp = { connections: 16, seconds: 2 }
const usualJob = { path: '/hooks/event', token, connections: 16, bytes: 1_000 }

const fields = '{{action}} #{{issue.number}} {{issue.title}} by {{sender.login}}: {{issue.html_url}}'

/** The wake of an event, as a user writes it. */
export const toWake = (path: string): object => ({
  match: { path },
  action: 'wake',
  wakeMode: 'next-heartbeat',
  textTemplate: fields,
})

async function startGenerator(folder: string): Promise<Child<LoadJob, LoadResult>> {
  return (await startChild<LoadJob, LoadResult>(join(folder, 'load.mjs'), [])).child
}

/** Starts a gateway with a wake hook, warms it up, and calls `measure`. The figures get what was lost, and what happened twice. */
export async function withStage(
  { folder, built, ...given }: RowOptions & Omit<OperatedOptions, 'folder' | 'built'>,
  measure: (stage: Stage) => Promise<Figures>,
): Promise<Figures> {
  const generators = await Promise.all([startGenerator(folder), startGenerator(folder)])
  const mappings = [toWake('event'), ...(given.mappings ?? [])]
  const gateway = await startOperated({ folder, built, ...given, mappings })
  const { dir } = gateway
  const receipts = join(dir, 'receipts')
  const sendFrom = (generator: Child<LoadJob, LoadResult>) => (job: Sent) =>
    generator.ask({ ...usualJob, port: gateway.port, receipts, ...job })
  const [send, sendBeside] = [sendFrom(generators[0]), sendFrom(generators[1])]
  try {
    await send(warmUp)
    const figures = await measure({ gateway, dir, send, sendBeside })
    await gateway.stop()
    return { ...compareLedger(readReceipts(receipts), readStoredIds(dir)), ...figures }
  } finally {
    gateway.kill()
    await Promise.all(generators.map((generator) => generator.kill()))
    rmSync(dir, { recursive: true, force: true })
  }
}
