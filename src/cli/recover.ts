// Lets the running gateway ask senders for their failed deliveries.
import { describeReport } from '../gateway/deliveries/recovery/recovery.ts'
import { exitCodes } from '../core/model/problem.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { askAdmin } from './gateway/gateway.ts'

/** `since`: milliseconds since the epoch. */
export type RecoverOptions = { readonly since?: number; readonly dryRun?: boolean }

export async function recover(context: Context, name: string | undefined, options: RecoverOptions): Promise<number> {
  const { since, dryRun = false } = options
  const query = {
    name,
    since: since === undefined ? undefined : new Date(since).toISOString(),
    dryRun: dryRun ? 'true' : undefined,
  }
  const reports = await withProgress(context, 'Asking the senders', async () => {
    let answer = await askAdmin(context, 'POST /api/recover', { query })
    while (answer.running) answer = await askAdmin(context, 'GET /api/recover')
    return answer.reports
  })
  if (context.json) for (const report of reports) context.printJson(report)
  else if (reports.length === 0) context.print('No mapping has "recover", so no sender was asked.')
  else
    for (const report of reports) context.print(describe({ ...report, problem: report.problem ?? undefined }, dryRun))
  return reports.some(({ problem }) => problem !== null) ? exitCodes.unavailable : exitCodes.ok
}

function describe(report: Parameters<typeof describeReport>[0], isDryRun: boolean): string {
  if (!isDryRun || report.problem !== undefined) return describeReport(report)
  return `${report.sender}: ${report.missing} did not arrive; nothing was changed`
}
