import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHandshakeSecrets } from '../../../../src/gateway/http/handshake-secrets.ts'

function createStage() {
  const dir = mkdtempSync(join(tmpdir(), 'hookloom-handed-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'state', 'handed.json')
  let now = 0
  return { file, advance: (ms: number) => (now += ms), open: () => createHandshakeSecrets({ file, clock: () => now }) }
}

describe('secrets from handshakes', () => {
  test('two secrets that arrive concurrently are both stored after a restart, in a file that only its owner can read', async () => {
    const { open, file } = createStage()
    const handed = open()
    await Promise.all([handed.arm('a'), handed.arm('b')])
    await Promise.all([handed.save('a', 'secret-a'), handed.save('b', 'secret-b')])
    const again = open()
    expect([again.find('a'), again.find('b'), again.find('c')]).toEqual([['secret-a'], ['secret-b'], []])
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  test('the window for a secret from a handshake is open for ten minutes or until one secret is accepted', async () => {
    const { open, advance } = createStage()
    const handed = open()
    expect(handed.isArmed('a')).toBe(false)
    expect(await handed.arm('a')).toBe(600_000)
    advance(599_999)
    expect(handed.isArmed('a')).toBe(true)
    const kept = handed.save('a', 'secret')
    expect(handed.isArmed('a')).toBe(false)
    await kept
    await handed.arm('a')
    advance(600_000)
    expect(handed.isArmed('a')).toBe(false)
  })

  test('of two handshakes that were in flight while the window was open, only the first one is accepted', async () => {
    const handed = createStage().open()
    await handed.arm('a')
    const [first, second] = await Promise.allSettled([handed.save('a', 'one'), handed.save('a', 'two')])
    expect(first.status).toBe('fulfilled')
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'unauthorized' } })
    expect(handed.find('a')).toEqual(['one'])
  })

  test('the two newest secrets from handshakes are valid, and older ones are not', async () => {
    const handed = createStage().open()
    for (const secret of ['one', 'two', 'three']) {
      await handed.arm('a')
      await handed.save('a', secret)
    }
    expect(handed.find('a')).toEqual(['three', 'two'])
  })
})
