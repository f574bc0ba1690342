import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { gatewayToken, hookToken, startGateway } from './gateway.ts'

const config = { hooks: { mappings: [{ id: 'later', match: { path: 'later' }, transform: { module: 'gone.ts' } }] } }

test('no command except hookloom init and hookloom dev prints a token', async () => {
  const gateway = await startGateway({ config, files: { 'payload.json': '{"message":"hello"}' } })
  const { dir } = gateway
  const payload = join(dir, 'payload.json')
  const outputs: string[] = []
  const run = async (...args: string[]) => {
    const { stdout, stderr } = await runCommand(args, { dir })
    outputs.push(`${args.join(' ')}\n${stdout}${stderr}`)
    return stdout
  }
  const answer = await run('send', 'later', payload, '--header', `authorization: Bearer ${hookToken}`, '--json')
  const [, id = ''] = /"deliveryId":"([^"]+)"/.exec(answer) ?? []
  await run('send', 'agent', payload)
  await run('list')
  await run('list', '--json')
  await run('list', '--refused', '--json')
  await run('show', id, '--json')
  await run('events', '--json')
  await run('sessions', '--json')
  await run('check')
  await run('doctor', '--json')
  await run('run', 'later', payload, '--header', `x-service-token: ${hookToken}`, '--json')
  await run('schema')
  await run('retry', id)
  await run('drop', id)
  await run('init')
  await gateway.stop()
  outputs.push(gateway.output())
  expect(id).not.toBe('')
  expect(outputs.filter((text) => text.replace(/^.*\n/, '').includes(hookToken))).toEqual([])
  expect(outputs.filter((text) => text.includes(gatewayToken))).toEqual([])
})
