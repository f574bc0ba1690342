// POST /api/alerts/test: queues a test alert like any other alert, so that the operator can see whether alerts arrive.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Job } from '../../../model/job.ts'
import type { ApiParts } from './parts.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { Handlers } from './handlers.ts'
import type { TestAlertFields } from '../../../model/api/operations.ts'

/** A request ends after this time, while the test continues. */
const waitMs = 20_000
const readEveryMs = 200

export function handleAlerts({ store, testAlert }: Pick<ApiParts, 'store' | 'testAlert'>) {
  /** The ids of the jobs of the tests that run: the job itself does not show that its alert is a test. */
  const tests = new Set<string>()

  return {
    'POST /api/alerts/test': async () => {
      const jobId = await testAlert()
      tests.add(jobId)
      return readTest(jobId)
    },
    'GET /api/alerts/test/{id}': ({ params }) => readTest(params.id),
  } satisfies Partial<Handlers>

  async function readTest(jobId: string): Promise<TestAlertFields> {
    for (const startedAt = performance.now(); ;) {
      const job = await store.job(jobId)
      if (job?.planned.kind !== 'alert') throw new Problem('not-found', 'No test alert has this id.')
      const ended = readOutcome(job)
      if (ended?.state === 'failed' && job.state === 'queued' && tests.has(jobId)) {
        // an alert is tried again for hours, and a test alert that arrives after hours would only confuse
        await store.endJob(jobId, { state: 'cancelled', reason: 'The test alert could not be delivered.' })
      }
      if (ended !== undefined) {
        tests.delete(jobId)
        return { jobId, ...ended }
      }
      if (performance.now() - startedAt > waitMs) return { jobId, state: 'running', detail: '' }
      await sleep(readEveryMs)
    }
  }
}

/** The outcome of the test. Undefined before the first attempt has ended, and while an attempt runs. */
function readOutcome({ state, steps, lastError }: Job): Omit<TestAlertFields, 'jobId'> | undefined {
  const post = steps.find(({ name }) => name === 'deliver')
  if (post?.state === 'done') return { state: 'delivered', detail: post.detail ?? '' }
  const detail = post?.detail ?? lastError
  return detail === undefined || state === 'running' ? undefined : { state: 'failed', detail }
}
