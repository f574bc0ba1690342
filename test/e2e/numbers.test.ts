// Numbers arrive with the digits that were sent, wherever a payload is read.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { describeEngines } from './engines.ts'
import { gatewayToken, hookToken } from './gateway.ts'
import type { Inside } from './inside.ts'

const one = '653247040368672768'
const next = '653247040368672769'
const all = [one, next, '1.50', '10.0', '1e400', '-0', '1E5']

const config = {
  hooks: {
    retain: 50,
    mappings: [
      { id: 'one', match: { path: 'cond', payload: { id: one } }, messageTemplate: 'the one' },
      { id: 'big', match: { path: 'cond', payload: { id: { gt: 5 } } }, messageTemplate: 'a big one' },
      {
        id: 'text',
        match: { path: 'text' },
        messageTemplate: '{{id}} {{list}} {{payload}}',
        sessionKey: 'hook:{{id}}',
      },
      { id: 'code', match: { path: 'code' }, transform: { module: 'code.js' } },
      { id: 'each', match: { path: 'each' }, forEach: 'list', transform: { module: 'list.js' } },
      { id: 'items', match: { path: 'items' }, forEach: 'list', messageTemplate: '{{list[0].id}}' },
    ],
  },
}
const files = {
  'hooks/transforms/code.js':
    'export default ({ payload }) => ({ message: JSON.stringify([payload.id, payload.price]) })',
  'hooks/transforms/list.js': 'export default ({ payload }) => ({ message: String(payload.list[0].id) })',
}

async function call(gateway: Inside, path: string, body?: object): Promise<Record<string, unknown>> {
  const answer = await fetch(`${gateway.adminUrl}${path}`, {
    headers: { authorization: `Bearer ${gatewayToken}` },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
  // as: the answers of the admin port
  return (await answer.json()) as Record<string, unknown>
}

async function send(gateway: Inside, hook: string, body: string, type = 'application/json'): Promise<string> {
  const answer = await fetch(`${gateway.url}/${hook}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${hookToken}`, 'content-type': type },
    body,
  })
  const { deliveryId } = (await answer.json()) as { deliveryId?: string }
  return String(deliveryId)
}

describeEngines('numbers of a payload', (start) => {
  test('templates, session keys, conditions, items and code get the digits that were sent', async () => {
    const gateway = await start({ config, files })
    const read = async (hook: string, body: string, type = 'application/json') => {
      const tried = await call(gateway, '/api/try', { hook, body, headers: { 'content-type': type } })
      const { actions } = tried as { actions: { fields: { message: string } }[] }
      return actions.map(({ fields }) => fields.message)
    }
    const readKey = async (body: string) => {
      const { jobs } = await call(gateway, `/api/deliveries/${await send(gateway, 'text', body)}`)
      return jobs
    }
    const text = `{"id":${next},"list":[${all.join(',')}]}`
    const form = `payload=${encodeURIComponent(text)}`
    const message = `${next} [${all.join(',')}] ${text}`
    expect(await read('text', text)).toEqual([message])
    expect(await readKey(text)).toMatchObject([{ sessionKey: `hook:${next}` }])
    expect(await read('text', form, 'application/x-www-form-urlencoded')).toEqual([message])
    expect(await readKey(`{"id":${one}}`)).toMatchObject([{ sessionKey: `hook:${one}` }])
    expect(await read('cond', `{"id":${one}}`)).toEqual(['the one'])
    expect(await read('cond', `{"id":${next}}`)).toEqual(['a big one'])
    expect(await read('code', `{"id":${next},"price":1.50}`)).toEqual([`["${next}",1.5]`])
    expect(await read('each', `{"list":[{"id":${one}},{"id":${next}}]}`)).toEqual([one, next])
    expect(await read('items', `{"list":[{"id":${one}},{"id":1.50}]}`)).toEqual([one, '1.50'])
  })

  test('a fixture of a kept request has the digits that were sent', async () => {
    const gateway = await start({ config, files })
    const id = await send(gateway, 'code', `{"id":${next},"price":1.50}`)
    const { file } = await call(gateway, `/api/deliveries/${id}/capture`, {})
    expect(readFileSync(String(file), 'utf8')).toMatch(new RegExp(`"id": ${next},\\s+"price": 1\\.50\\s`))
  })
})
