// Valid inputs, changed at random: nothing throws, nothing is read in two ways, and nothing leaves its quotes. `long/fuzz.test.ts` tries more of them.
import { createServer } from 'node:http'
import { beforeAll, describe, expect, test } from 'vitest'
import { plainText } from '../../src/plugins/channels/shared/markup.ts'
import { readDeliveryId } from '../e2e/answers.ts'
import { post } from '../e2e/wire.ts'
import { onFileEnd } from '../file-end.ts'
import { seed } from '../seed.ts'
import { createHttpTarget, listenAnywhere } from './fuzz-http.ts'
import { createProofTarget } from './fuzz-proofs.ts'
import { createTargets, targetNames } from './fuzz-targets.ts'
import { createReplyTarget } from './fuzz-texts.ts'
import { runCampaign, type Target } from './mutations.ts'

let made: Awaited<ReturnType<typeof createTargets>>

beforeAll(async () => {
  made = await createTargets()
})

/** The fault that a campaign of the usual size finds, with the seed that repeats it. */
async function findFault(target: Target | undefined): Promise<string | undefined> {
  if (target === undefined) throw new Error('there is no such target')
  const { fault } = await runCampaign(target, { seed, goesOn: (done) => done < target.cases })
  return fault === undefined ? undefined : `HOOKLOOM_SEED=${seed}, ${fault}`
}

test.each(targetNames)('no change of %s breaks a promise', async (name) => {
  expect(await findFault(made.targets.get(name))).toBeUndefined()
})

test('a gateway that got hostile requests accepts the next one', async () => {
  expect(readDeliveryId(await post(made.gateway.port, '/hooks/wake', { text: 'x' }))).not.toBe('')
})

describe('a campaign finds the fault of a flawed twin', () => {
  test('a server of Node reads bytes as other requests than a strict reader', async () => {
    const target = await createHttpTarget((listener) => {
      const server = createServer(listener)
      onFileEnd(() => {
        server.closeAllConnections()
        server.close()
      })
      return listenAnywhere(server)
    })
    expect(await findFault(target)).toContain('other requests')
  })

  test('a proof that is only compared at its beginning is accepted', async () => {
    const target = createProofTarget((verifier, request) => {
      const isClaimed = verifier.isClaimed(request.headers)
      return isClaimed ? { ok: true } : verifier.verify(request)
    })
    expect(await findFault(target)).toContain('accepts a changed request')
  })

  test('a proof that throws is found', async () => {
    const target = createProofTarget((_, { headers }) => {
      if (Object.values(headers).some((value) => value.includes('__proto__'))) throw new Error('a fault')
      return { ok: false, fault: 'sender', reason: 'x' }
    })
    expect(await findFault(target)).toContain('threw Error: a fault')
  })

  test('a reply that is written unchanged has pictures and links of its own', async () => {
    expect(await findFault(createReplyTarget((reply) => reply, [['plainText', plainText]]))).toBeDefined()
  })
})
