// Faults of plugins that nothing else shows: what they throw outside of a call, pieces that are none, and a sender without a list.
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { runCommand } from './command.ts'
import { hookToken, startGateway } from './gateway.ts'
import { startInside } from './inside.ts'

const file = 'hooks/plugins/pier.ts'
const config = { plugins: ['./plugins/pier.ts'], channels: { pier: { to: 'quay' } } }

/** A channel whose messages are sent after this code has run. */
const toChannel = (code: string, split = '[text]') => `import { defineChannel } from 'hookloom/define'
import { z } from 'zod'
export default defineChannel({
  name: 'pier',
  about: 'The pier.',
  options: z.strictObject({}),
  create: () => ({
    dedupes: false,
    whyNot: () => undefined,
    split: (text) => ${split},
    async send({ text }) {
      ${code}
      return { kind: 'sent', id: String(text.length) }
    },
  }),
})
`

async function ask(url: string, message = 'The tide is out.'): Promise<void> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${hookToken}` }
  const body = JSON.stringify({ message, channel: 'pier' })
  expect((await fetch(`${url}/agent`, { method: 'POST', headers, body })).status).toBe(200)
}

test('an exception in a timer of a plugin ends the gateway, and the log names the plugin and its line', async () => {
  const code = "setTimeout(() => { throw new TypeError('the secret of a payload') }, 10)"
  const gateway = await startGateway({ config, files: { [file]: toChannel(code) } })
  const closed = once(gateway.child, 'close')
  await ask(gateway.url)
  expect((await closed)[0]).toBe(1)
  const line =
    gateway
      .output()
      .split('\n')
      .find((text) => text.includes('outside of a call')) ?? ''
  expect(line).toContain('hooks/plugins/pier.ts threw a TypeError at plugins/pier.ts:12 outside of a call')
  expect(line).not.toContain('payload')
})

test('a rejection that nobody handles is logged with its plugin, and the gateway goes on', async () => {
  const code = "void Promise.reject(new RangeError('no'))"
  const gateway = await startGateway({ config, files: { [file]: toChannel(code) } })
  await ask(gateway.url)
  await gateway.printed(/hooks\/plugins\/pier\.ts threw a RangeError at plugins\/pier\.ts:12 outside of a call/)
  await ask(gateway.url)
  expect(await gateway.stop()).toBe(0)
})

test.each([
  ['throws', '{ throw new TypeError("no") }', 'threw a TypeError at plugins/pier.ts:10 in split'],
  ['returns no list', '"all"', 'returned no list of texts from split'],
])('a channel whose split %s is named in the log once, and its message is sent', async (_, split, why) => {
  const warned: string[] = []
  const add = () => {}
  const log = { debug: add, info: add, warn: (_fields: object, text: string) => void warned.push(text), error: add }
  const gateway = await startInside({
    config,
    files: { [file]: toChannel('globalThis.sentToPier = text', split) },
    log,
  })
  for (const message of ['One.', 'Two.']) {
    await ask(gateway.url, message)
    await expect.poll(() => Reflect.get(globalThis, 'sentToPier')).toContain(message)
  }
  Reflect.deleteProperty(globalThis, 'sentToPier')
  expect(warned.filter((text) => text.includes('split'))).toEqual([
    `The channel hooks/plugins/pier.ts ${why}. Its messages are split after 2,000 characters.`,
  ])
})

test('hookloom recover says that the sender of a plugin keeps no list', async () => {
  const outbox = `import { defineOutbox } from 'hookloom/define'
import { z } from 'zod'
export default defineOutbox({
  name: 'pier',
  about: 'No list.',
  remembers: false,
  options: z.strictObject({}),
  create: () => ({
    name: 'pier', remembers: false, hasTimes: true, overlap: 0,
    async *pages() {}, fetch: async () => undefined, state: async () => ({ isOn: true }), turnOn: async () => {},
  }),
})
`
  const mapping = { match: { path: 'pier' }, messageTemplate: 'pier', deliver: false, recover: { sender: 'pier' } }
  const { dir } = await startInside({
    config: { plugins: ['./plugins/pier.ts'], hooks: { mappings: [mapping] } },
    files: { [file]: outbox },
  })
  const { code, stdout } = await runCommand(['recover'], { dir })
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: 'pier: it keeps no list of its deliveries; its subscriptions were checked\n',
  })
  const json = (await runCommand(['recover', '--json'], { dir })).json()
  expect(json).toEqual([expect.objectContaining({ sender: 'pier', remembers: false })])
})
