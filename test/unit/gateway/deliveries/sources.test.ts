// Which of several gateways watches the mailbox.
import { expect, test } from 'vitest'
import { silentLog } from '../../../../src/base/log.ts'
import { createSources } from '../../../../src/gateway/deliveries/sources.ts'
import { createThrottle } from '../../../../src/gateway/http/throttle.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { makeFolder } from '../../../e2e/gateway.ts'
import { toGeneration } from '../../core/mapping/decide.ts'

test('the gateway that has the mailbox duty watches the mailbox until it loses the duty', async () => {
  const gmail = { account: 'a@example.com', mode: 'poll' }
  const generation = toGeneration([], { hooks: { gmail } })
  let isHeld = false
  const sources = createSources({
    dir: makeFolder(),
    env: {},
    own: () => [],
    receive: async () => ({ status: 404, headers: {}, body: Buffer.from('') }),
    duty: { isHeld: () => isHeld },
    generation: () => generation,
    store: createMemoryStore({ clock: Date.now }),
    rerunner: { rerun: async () => 'accepted', claim: async () => {}, release: async () => {} },
    repeats: { note() {} },
    gate: () => ({ ...createThrottle({ clock: Date.now }), clientOf: () => 'client' }),
    clock: Date.now,
    newId: () => 'id',
    log: silentLog,
  })
  sources.apply(generation.config)
  expect(sources.list().map(({ account }) => account)).toEqual([])
  isHeld = true
  sources.apply(generation.config)
  await expect.poll(() => sources.list().map(({ account }) => account)).toEqual(['a@example.com'])
  isHeld = false
  sources.apply(generation.config)
  await expect.poll(() => sources.list().map(({ account }) => account)).toEqual([])
  await sources.stop()
})
