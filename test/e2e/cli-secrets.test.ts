import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken, post, startGateway } from './gateway.ts'

const config = {
  hooks: { retain: 10, mappings: [{ id: 'later', match: { path: 'later' }, transform: { module: 'gone.ts' } }] },
}

/** The commands that the test does not call: `dev` prints a token, `start` is the gateway of the test, `mcp` serves until its input ends, and `help`
 * prints the list of commands. */
const notCalled = ['dev', 'start', 'relay', 'mcp', 'help']

test('no command except hookloom init and hookloom dev prints the hook token or the gateway token', async () => {
  const gateway = await startGateway({ config, files: { 'payload.json': '{"message":"hello"}' } })
  const { dir } = gateway
  const payload = join(dir, 'payload.json')
  const outputs: string[] = []
  const called = new Set<string>()
  const run = async (...args: readonly string[]) => {
    const { stdout, stderr } = await runCommand(args, { dir })
    outputs.push(`${args.join(' ')}\n${stdout}${stderr}`)
    called.add(args[0] ?? '')
    return stdout
  }
  const answer = await run('send', 'later', payload, '--header', `authorization: Bearer ${hookToken}`, '--json')
  const [, id = ''] = /"deliveryId":"([^"]+)"/.exec(answer) ?? []
  const [, runId = ''] = /"runId":"([^"]+)"/.exec(await run('send', 'agent', payload)) ?? []
  for (const args of [
    ['wait', runId],
    ['await', 'later', '--key', 'x', '--timeout', '1'],
    ['list'],
    ['list', '--json'],
    ['list', '--refused', '--json'],
    ['show', id, '--json'],
    ['events', '--json'],
    ['sessions', '--json'],
    ['check'],
    ['doctor', '--json'],
    ['run', 'later', payload, '--header', `x-service-token: ${hookToken}`, '--json'],
    ['schema'],
    ['skill'],
    ['open', '--no-browser'],
    ['alert', '--test'],
    ['shadow'],
    ['try', '{{message}}'],
    ['replay', '--json'],
    ['record'],
    ['bisect', id],
    ['publish'],
    ['verify', '--explain', id],
    ['capture', id],
    ['test'],
    ['types'],
    ['shapes', '--json'],
    ['recover'],
    ['pause', 'all'],
    ['resume', 'all'],
    ['cancel', runId],
    ['budget'],
    ['state'],
    ['audit', '--json'],
    ['token', 'list'],
    ['gmail', 'status'],
    ['store', 'copy', '--to', 'copy.db'],
    ['retry', id],
    ['drop', id],
    ['new', 'made'],
    ['remove', 'made'],
    ['add', 'transform', 'github-pull-request'],
    ['init'],
  ])
    await run(...args)
  await gateway.stop()
  outputs.push(gateway.output())
  expect([id, runId]).not.toContain('')
  const { stdout: help } = await runCommand(['--help'])
  const commands = [...help.matchAll(/^ {2}([a-z]+)(?= )/gm)].map(([, name = '']) => name)
  expect(commands.filter((name) => name !== 'hookloom' && !called.has(name))).toEqual(notCalled)
  expect(outputs.filter((text) => text.replace(/^.*\n/, '').includes(hookToken))).toEqual([])
  expect(outputs.filter((text) => text.includes(gatewayToken))).toEqual([])
})

test('a command that copies a request says which variables of transforms it does not know, and so cannot remove', async () => {
  const named = { hooks: { ...config.hooks, transforms: { env: ['LATER_KEY', 'KNOWN_KEY'] } } }
  const key = 'the-value-of-the-later-key'
  const gateway = await startGateway({
    config: named,
    env: { LATER_KEY: key },
    files: { '.env': 'KNOWN_KEY=a-known-value\n' },
  })
  await post(gateway, 'later', { key })
  const run = (env: Record<string, string>, ...args: string[]) => runCommand(args, { dir: gateway.dir, env })
  for (const args of [['record'], ['new', 'copy', '--from', 'last']]) {
    const { stderr } = await run({}, ...args)
    expect(stderr).toMatch(/^! LATER_KEY of hooks\.transforms\.env is not set here/m)
    expect((await run({ LATER_KEY: key }, ...args)).stderr).not.toContain('is not set here')
  }
  await gateway.stop()
})
