// `context.replay` is false only for a call that serves a delivery.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type CommandResult, runCommand } from './command.ts'
import { gatewayToken, hookToken, makeConfigDir, makeFolder, post, writeFiles } from './gateway.ts'
import { startInside } from './inside.ts'

const module = 'hooks/transforms/x.ts'
const fixture = JSON.stringify({ request: { path: 'x', payload: { n: 1 } }, expect: { decision: 'accept' } })
const mappings = [{ match: { path: 'x' }, transform: { module: 'x.ts' }, deliver: false, retain: 5 }]
const twice = [{ ...mappings[0], match: { path: 'many' }, forEach: 'items' }]
const config = { hooks: { mappings: [...mappings, ...twice] } }

/** Code that writes a line for each call. `version` makes the code new. */
const toCode = (calls: string, version = 1) => `import { appendFileSync } from 'node:fs'
export default (_, { replay }) => {
  appendFileSync(${JSON.stringify(calls)}, replay ? 'replay\\n' : 'delivery\\n')
  return { message: 'version ${version}' }
}
`

function makeCalls(): { file: string; take: () => string[] } {
  const file = join(makeFolder(), 'calls')
  return {
    file,
    take: () => {
      const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
      rmSync(file, { force: true })
      return [...new Set(lines)]
    },
  }
}

describe('context.replay of a transform', () => {
  test.each([
    ['test', ['test']],
    ['test -u', ['test', '-u']],
    ['check', ['check']],
    ['run', ['run', 'x', 'payload.json']],
    ['replay', ['replay']],
  ])('hookloom %s runs transforms only with context.replay', async (name, args) => {
    const calls = makeCalls()
    const dir = makeConfigDir({
      config,
      files: { [module]: toCode(calls.file), 'hooks/transforms/x.fixtures/a.json': fixture, 'payload.json': '{"n":2}' },
    })
    const rest = args.map((word) => (word === 'payload.json' ? join(dir, word) : word))
    const ran: CommandResult = await runCommand(rest, { dir })
    expect(`${ran.code} ${ran.stderr}`).toMatch(/^(0|66|70) /)
    // without a gateway and kept requests, a replay calls nothing
    expect(calls.take()).toEqual(name === 'replay' ? [] : ['replay'])
  })

  test('a transform that is imported from another program runs with context.replay', async () => {
    const calls = makeCalls()
    const source = makeFolder()
    const theirs = [{ match: { path: 'x' }, transform: { module: 'x.ts' } }]
    const hooks = { enabled: true, token: 'a-token-of-the-hooks-0123456789', mappings: theirs }
    writeFiles(source, { 'openclaw.json': JSON.stringify({ hooks }), [module]: toCode(calls.file) })
    const dir = join(makeFolder(), 'home')
    expect((await runCommand(['init', '--from', join(source, 'openclaw.json')], { dir })).code).toBe(0)
    expect(calls.take()).toEqual(['replay'])
  })

  test('context.replay is set for fixtures, captures and replays, and not for a delivery', async () => {
    const calls = makeCalls()
    const files = { [module]: toCode(calls.file), 'hooks/transforms/x.fixtures/a.json': fixture }
    const gateway = await startInside({ config, files })
    expect(calls.take()).toEqual(['replay'])

    const { deliveryId } = await post({ url: gateway.url, token: hookToken }, 'x', { n: 3 })
    await post({ url: gateway.url, token: hookToken }, 'many', { items: [1, 2] })
    expect(calls.take()).toEqual(['delivery'])

    const ask = async (path: string, body?: object) => {
      const answer = await fetch(`${gateway.adminUrl}/api/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gatewayToken}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      expect(answer.status).toBe(200)
    }
    await ask(`deliveries/${String(deliveryId)}/capture`, { name: 'captured' })
    expect(calls.take()).toEqual(['replay'])
    expect((await runCommand(['capture', String(deliveryId), '--name', 'twin'], { dir: gateway.dir })).code).toBe(0)
    expect(calls.take()).toEqual(['replay'])
    await ask('replay')
    expect(calls.take()).toEqual(['replay'])

    writeFiles(gateway.dir, { [module]: toCode(calls.file, 2) })
    rmSync(join(gateway.dir, 'hooks/transforms/x.fixtures/captured.json'))
    rmSync(join(gateway.dir, 'hooks/transforms/x.fixtures/twin.json'))
    await expect.poll(() => existsSync(calls.file)).toBe(true)
    expect(calls.take()).toEqual(['replay'])
    // a repetition by the operator is a delivery
    await ask(`deliveries/${String(deliveryId)}/again`)
    await expect.poll(() => calls.take()).toContain('delivery')
  })
})
