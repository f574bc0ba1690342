// /api/recover: asks senders for deliveries that did not arrive, at the request of the operator.
import type Router from '@koa/router'
import { within } from '../../base/time.ts'
import type { Recovery, RecoverReport } from '../../deliveries/recovery/recovery.ts'
import { Problem, toProblem } from '../../model/problem.ts'
import { readMoment, readParameter } from './query.ts'
import type { Guards } from '../operator.ts'
import { answerJson } from './answer.ts'

/** A request ends after this time, while the pass continues. */
const waitMs = 20_000

type Asked = { readonly ended: Promise<void>; reports?: readonly RecoverReport[]; problem?: Problem }

export function addRecoverRoutes(router: Router, guards: Guards, { recovery }: { readonly recovery: Recovery }): void {
  let asked: Asked | undefined

  router.post('/api/recover', guards.operate, async (ctx) => {
    const dryRun = readParameter(ctx, 'dryRun')
    if (dryRun !== undefined && dryRun !== 'true')
      throw new Problem('usage-invalid', 'dryRun must be true, if it is given.')
    const name = readParameter(ctx, 'name')
    asked = begin(recovery.run({ name, since: readMoment(ctx, 'since'), isDryRun: dryRun === 'true' }))
    answerJson(ctx, await waitForReports(asked))
  })
  router.get('/api/recover', guards.read, async (ctx) => {
    if (asked === undefined) throw new Problem('not-found', 'Nothing was asked for since this gateway started.')
    answerJson(ctx, await waitForReports(asked))
  })
}

function begin(running: Promise<RecoverReport[]>): Asked {
  const ended = running.then(
    (reports) => void (own.reports = reports),
    (error: unknown) => void (own.problem = toProblem(error)),
  )
  const own: Asked = { ended }
  return own
}

/** `running`: the client asks again with GET. Throws the reason why the pass could not begin. */
async function waitForReports(asked: Asked): Promise<{ running: boolean; reports: readonly object[] }> {
  await within(waitMs, asked.ended)
  if (asked.problem !== undefined) throw asked.problem
  const { reports } = asked
  return { running: reports === undefined, reports: (reports ?? []).map(toReportFields) }
}

function toReportFields(report: RecoverReport): object {
  const { problem, isDenied: _, leavesNew: __, ...fields } = report
  return { ...fields, problem: problem ?? null }
}
