import { expect, test, vi } from 'vitest'
import { createHandshakeSecrets } from '../../../../src/gateway/http/handshake-secrets.ts'
import { createSharing } from '../../../../src/gateway/http/shared.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { Mapping } from '../../../../src/core/model/mapping.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { createGeneration } from '../../../../src/gateway/generation/generation.ts'
import type { Store } from '../../../../src/store/store.ts'
import { makeFolder } from '../../../e2e/gateway.ts'
import { builtInSenders } from '../../../../src/gateway/built-in.ts'

/** A store with one cursor. While `isHeld` is true, a read waits until `answer` is called. */
function createStage() {
  const stage: { text: string | undefined; isHeld: boolean; answer: (found: string | undefined) => void } = {
    text: undefined,
    isHeld: false,
    answer: () => {},
  }
  const store: Pick<Store, 'cursor' | 'appendAll'> = {
    cursor: async () =>
      stage.isHeld ? await new Promise<string | undefined>((resolve) => (stage.answer = resolve)) : stage.text,
    async appendAll(_, moves) {
      const [move] = [moves ?? []].flat()
      if (move?.from !== stage.text) return 'moved'
      stage.text = move?.to
      return []
    },
  }
  const own = createHandshakeSecrets({ file: `${makeFolder()}/handed.json`, clock: () => 0 })
  const mapping = { ...Mapping.parse({ match: { path: 'a' }, verify: { scheme: 'asana' } }), id: 'a' }
  const generation = createGeneration({
    senders: builtInSenders,
    config: ConfigSchema.parse({}),
    mappings: [mapping],
    transforms: new Map(),
  })
  // as: the stage shares no lockouts
  const parts = { store: store as Store, clock: () => 0, log: silentLog, generation: () => generation }
  const sharing = createSharing(parts)
  const name = generation.mappings[0]?.identity.secretsName ?? ''
  return { stage, own, name, sharing, handed: sharing.handed(own) }
}

test('a secret that was just stored stays known, even if a read that began before the write ends after it', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const { stage, name, handed, sharing } = createStage()
  await handed.arm(name)
  const before = stage.text
  stage.isHeld = true
  vi.advanceTimersByTime(1_000)
  stage.isHeld = false
  await handed.save(name, 'secret-of-the-sender')
  expect(handed.find(name)).toEqual(['secret-of-the-sender'])
  stage.answer(before)
  await sharing.stop()
  vi.useRealTimers()
  expect(handed.find(name)).toEqual(['secret-of-the-sender'])
  expect(handed.isArmed(name)).toBe(false)
})

test('a secret that the gateways share is also kept in the file of the gateway that accepted it', async () => {
  const { own, name, handed, sharing } = createStage()
  await handed.arm(name)
  await handed.save(name, 'secret-of-the-sender')
  expect(own.find(name)).toEqual(['secret-of-the-sender'])
  await expect(handed.save(name, 'another')).rejects.toMatchObject({ code: 'unauthorized' })
  await sharing.stop()
})
