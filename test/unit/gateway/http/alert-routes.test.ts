import { expect, test } from 'vitest'
import { handleAlerts } from '../../../../src/gateway/http/api/alerts.ts'
import type { Job } from '../../../../src/model/job.ts'
import type { Store } from '../../../../src/store/store.ts'
import { startRoutes } from './routes.ts'

async function startAlerts() {
  const ended: string[] = []
  const planned: Job['planned'] = { kind: 'alert', agentId: 'main', sessionKey: 'main', text: 'x', event: false }
  const rest = { createdAt: 0, attempts: 1, steps: [], posts: [], lastError: 'The chat is down.' }
  const store: Pick<Store, 'job' | 'endJob'> = {
    job: async (id) => ({ id, planned, state: 'queued', ...rest }) as unknown as Job,
    endJob: async (id) => (ended.push(id), 'ended'),
  }
  // as: the routes use only these two calls
  const handlers = handleAlerts({ store: store as Store, testAlert: async () => 'a-test' })
  return { ended, call: await startRoutes(handlers) }
}

test('a test alert that could not be sent is ended, so that it is not tried again', async () => {
  const { ended, call } = await startAlerts()
  expect(await call('POST', '/api/alerts/test')).toBe(200)
  expect(ended).toEqual(['a-test'])
})

test('a GET of an alert that is not a test does not end it', async () => {
  const { ended, call } = await startAlerts()
  expect(await call('GET', '/api/alerts/test/an-alert')).toBe(200)
  expect(ended).toEqual([])
})
