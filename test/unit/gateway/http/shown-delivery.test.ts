import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { handleDeliveries } from '../../../../src/gateway/http/api/deliveries.ts'
import { findModel } from '../../../../src/gateway/http/api/outlets.ts'
import { toRoute } from '../../../../src/gateway/http/api/hook-map.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { createSqliteStore } from '../../../../src/store/sqlite/sqlite.ts'
import { claimOne } from '../../../contract/jobs.ts'
import { newDelivery, newJob } from '../../../contract/stage.ts'
import { onFileEnd } from '../../../file-end.ts'
import { toGeneration } from '../../core/mapping/decide.ts'

const at = 1_800_000_000_000

test('an opened delivery that waits is read with one look at its waits', async () => {
  const store = createSqliteStore({
    file: join(mkdtempSync(join(tmpdir(), 'hookloom-shown-')), 'hookloom.db'),
    clock: () => at,
  })
  onFileEnd(() => store.close())
  const delivery = newDelivery({ at, jobs: [newJob()] })
  await store.append(delivery)
  await store.report(await claimOne(store), { outcome: { kind: 'retry', error: 'busy', afterMs: 60_000 } })
  let reads = 0
  const waits: typeof store.waits = (query) => {
    reads += 1
    return store.waits(query)
  }
  const parts = { store: { ...store, waits }, generation: () => toGeneration([]), dir: '/tmp', clock: () => at }
  const { 'GET /api/deliveries/{id}': read } = handleDeliveries(
    parts as unknown as Parameters<typeof handleDeliveries>[0],
  )
  // as: the handler reads only the id
  const shown = await read({ params: { id: delivery.id } } as never)
  expect(shown.jobs[0]?.waits).toMatch(/for its next attempt/)
  expect(reads).toBe(1)
})

test('the hook map and the list of outlets name the same model or runner of an agent', () => {
  const config = ConfigSchema.parse({
    agents: {
      defaults: { model: 'mine/opus' },
      list: [
        { id: 'main', default: true },
        { id: 'tool', runner: 'command' },
        { id: 'small', model: 'mine/haiku' },
      ],
    },
  })
  const toModel = (agentId: string) =>
    toRoute({ mapping: { action: 'agent', agentId, deliver: false, channel: 'last' } as never }, config).model
  const found = ['main', 'tool', 'small'].map(toModel)
  expect(found).toEqual(['mine/opus', 'command', 'mine/haiku'])
  expect(['main', 'tool', 'small'].map((agentId) => findModel(agentId, config).name)).toEqual(found)
})
