// Which of several gateways watches the mailbox.
import { expect, test } from 'vitest'
import { silentLog } from '../../../../src/base/log.ts'
import { createMailbox } from '../../../../src/gateway/deliveries/mailbox.ts'
import { createThrottle } from '../../../../src/gateway/http/throttle.ts'
import { createMemoryStore } from '../../../../src/store/sqlite/sqlite.ts'
import { makeFolder } from '../../../e2e/gateway.ts'
import { toGeneration } from '../../core/mapping/decide.ts'

test('the gateway that has the mailbox duty watches the mailbox until it loses the duty', async () => {
  const gmail = { account: 'a@example.com', mode: 'poll' }
  const generation = toGeneration([], { hooks: { gmail } })
  let isHeld = false
  const mailbox = createMailbox({
    dir: makeFolder(),
    env: {},
    duty: { isHeld: () => isHeld },
    generation: () => generation,
    store: createMemoryStore({ clock: Date.now }),
    rerunner: { rerun: async () => 'accepted', claim: async () => {}, release: async () => {} },
    repeats: { note() {} },
    pushGate: () => ({ ...createThrottle({ clock: Date.now }), clientOf: () => 'client' }),
    clock: Date.now,
    newId: () => 'id',
    log: silentLog,
  })
  mailbox.apply(generation.config)
  expect(mailbox.status()).toBeUndefined()
  isHeld = true
  mailbox.apply(generation.config)
  await expect.poll(() => mailbox.status()?.account).toBe('a@example.com')
  isHeld = false
  mailbox.apply(generation.config)
  await expect.poll(() => mailbox.status()).toBeUndefined()
  await mailbox.stop()
})
