import { expect, test } from 'vitest'
import { openAccess } from '../../../../src/gateway/http/stored-tokens.ts'
import { toTokenDigest } from '../../../../src/gateway/generation/tokens.ts'
import { silentLog } from '../../../../src/base/log.ts'

test('a new token does not replace a token that another gateway makes at the same time', async () => {
  let text: string | undefined
  const reads: ((found: string | undefined) => void)[] = []
  let isHeld = false
  const { tokens } = await openAccess({
    clock: () => 0,
    log: silentLog,
    store: {
      cursor: async () => (isHeld ? await new Promise((resolve) => reads.push(resolve)) : text),
      async appendAll(_, moves) {
        const [move] = [moves ?? []].flat()
        if (move?.from !== text) return 'moved'
        text = move?.to
        return []
      },
    },
  })
  isHeld = true
  const adding = tokens.add({ name: 'mine', may: ['read'] })
  const listing = tokens.list()
  const before = text
  const other = { name: 'other', id: 'x', digest: '00'.repeat(32), may: ['read'], createdAt: 0 }
  text = JSON.stringify([other])
  isHeld = false
  // the first read began before the other gateway wrote, and the second one after it
  reads[0]?.(before)
  reads[1]?.(text)
  await Promise.all([adding, listing])
  expect((await tokens.list()).map(({ name }) => name)).toEqual(['other', 'mine'])
  await tokens.stop()
})

test('a revoked token stays revoked, even if a read that began before the revocation ends after it', async () => {
  let text: string | undefined
  let held: ((found: string | undefined) => void) | undefined
  let isHeld = false
  const { tokens } = await openAccess({
    clock: () => 0,
    log: silentLog,
    store: {
      cursor: async () => (isHeld ? await new Promise((resolve) => (held = resolve)) : text),
      async appendAll(_, moves) {
        const [move] = [moves ?? []].flat()
        if (move?.from !== text) return 'moved'
        text = move?.to
        return []
      },
    },
  })
  const digest = toTokenDigest(await tokens.add({ name: 'ci', may: ['read'] }))
  expect(tokens.set().find(digest)).toBeDefined()
  const before = text
  isHeld = true
  const listing = tokens.list()
  isHeld = false
  await tokens.revoke('ci')
  held?.(before)
  expect(await listing).toEqual([])
  expect(tokens.set().find(digest)).toBeUndefined()
  await tokens.stop()
})
