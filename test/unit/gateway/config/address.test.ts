import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { writeAddress } from '../../../../src/gateway/config/address.ts'

const address = (pid: number) => ({
  pid,
  url: 'http://x/hooks',
  adminUrl: 'http://x',
  startedAt: '2026-01-02T03:04:05Z',
})

test('a gateway that stops removes its address, but not that of the gateway which replaced it', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'hookloom-address-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'state/gateway.json')
  const removeFirst = await writeAddress(dir, address(1))
  const removeSecond = await writeAddress(dir, address(2))
  removeFirst()
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ pid: 2 })
  removeSecond()
  expect(existsSync(file)).toBe(false)
})
