// /api/recover: asks senders for deliveries that did not arrive, at the request of the operator.
import { within } from '../../../base/time.ts'
import type { RecoverReport } from '../../deliveries/recovery/recovery.ts'
import { Problem, toProblem } from '../../../core/model/problem.ts'
import { readMoment, readParameter } from './query.ts'
import type { ApiParts } from './parts.ts'
import type { Handlers } from './handlers.ts'

/** A request ends after this time, while the pass continues. */
const waitMs = 20_000

type Asked = { readonly ended: Promise<void>; reports?: readonly RecoverReport[]; problem?: Problem }

export function handleRecover({ recovery }: Pick<ApiParts, 'recovery'>) {
  let asked: Asked | undefined

  return {
    'POST /api/recover': ({ query }) => {
      const dryRun = readParameter(query, 'dryRun')
      if (dryRun !== undefined && dryRun !== 'true')
        throw new Problem('usage-invalid', 'dryRun must be true, if it is given.')
      const name = readParameter(query, 'name')
      asked = begin(recovery.run({ name, since: readMoment(query, 'since'), isDryRun: dryRun === 'true' }))
      return waitForReports(asked)
    },
    'GET /api/recover': () => {
      if (asked === undefined) throw new Problem('not-found', 'Nothing was asked for since this gateway started.')
      return waitForReports(asked)
    },
  } satisfies Partial<Handlers>
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
async function waitForReports(asked: Asked) {
  await within(waitMs, asked.ended)
  if (asked.problem !== undefined) throw asked.problem
  const { reports } = asked
  return { running: reports === undefined, reports: (reports ?? []).map(toReportFields) }
}

function toReportFields(report: RecoverReport) {
  const { problem, isDenied: _, leavesNew: __, ...fields } = report
  return { ...fields, problem: problem ?? null }
}
