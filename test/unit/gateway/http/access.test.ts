import { describe, expect, test } from 'vitest'
import { maySend } from '../../../../src/model/config/tokens.ts'
import { createTokenSet, listConfigTokens, toTokenDigest } from '../../../../src/gateway/generation/tokens.ts'

describe('the right send:<hook>', () => {
  test.each([
    ['deploy', 'deploy'],
    ['ci-*', 'ci-'],
    ['ci-*', 'ci-build/x'],
    ['*', ''],
    ['*', 'any/thing'],
    ['a*b*c', 'abc'],
    ['a*b*c', 'a-b-b-c'],
    ['*-end', 'the-end'],
  ])('send:%s allows the hook "%s"', (pattern, name) => {
    expect(maySend([`send:${pattern}`], name)).toBe(true)
  })

  test.each([
    ['deploy', 'Deploy'],
    ['deploy', 'deploy2'],
    ['ci-*', 'ci'],
    ['ab*ba', 'aba'],
    ['a*b*c', 'a-c-b'],
    ['a.c', 'abc'],
    ['a**b', 'a'],
  ])('send:%s does not allow the hook "%s"', (pattern, name) => {
    expect(maySend([`send:${pattern}`], name)).toBe(false)
  })

  test('rights other than send:<hook> allow no hook', () => {
    expect(maySend(['runs', 'admin', 'operate', 'read'], 'admin')).toBe(false)
  })

  test('the comparison of a hostile name with a pattern of many stars ends', () => {
    const pattern = `${'a*'.repeat(200)}b`
    expect(maySend([`send:${pattern}`], 'a'.repeat(512))).toBe(false)
  })
})

test('a set of a thousand tokens finds each of its tokens and nothing else', () => {
  const all = Array.from({ length: 1_000 }, (_, index) => `token-${index}-0123456789`)
  const scoped = Object.fromEntries(all.map((token, index) => [`t${index}`, { token, may: ['runs'] }]))
  const set = createTokenSet(listConfigTokens(['the-hook-token-0123456789'], scoped))
  for (const [index, token] of all.entries()) expect(set.find(toTokenDigest(token))?.name).toBe(`tokens.t${index}`)
  expect(set.find(toTokenDigest('the-hook-token-0123456789'))?.may).toBe('hook')
  expect(set.find(toTokenDigest('token-1000-0123456789'))).toBeUndefined()
})
