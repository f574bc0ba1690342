// The action `deliver`: a message to one recipient or to several, without an agent.
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import type { MappingInput } from '../../../../src/core/model/mapping.ts'
import { decideOn, toGeneration, toTestDelivery } from './decide.ts'

const chats = [
  { channel: 'slack', to: 'C024BE91L' },
  { channel: 'telegram', to: '-100:topic:7' },
] as const
const deploys: MappingInput = { match: { path: 'in' }, action: 'deliver', messageTemplate: '{{service}} is up' }
const payload = { service: 'api' }

function decideWith(mapping: MappingInput, result?: unknown, given: JsonValue = payload) {
  const code = result === undefined ? {} : { transform: { module: 'm.ts' } }
  const options = { transforms: { 'm.ts': () => result } }
  return decideOn(toGeneration([{ ...mapping, ...code }], options), toTestDelivery('in', given))
}

describe('a mapping with the action deliver', () => {
  test('a deliver mapping makes a message from its template, and uses the recipient as the key of its queue', async () => {
    expect(await decideWith({ ...deploys, name: 'Deploys', channel: 'slack', to: 'C024BE91L' })).toMatchObject({
      kind: 'accept',
      actions: [
        {
          kind: 'deliver',
          action: { kind: 'deliver', message: 'api is up', name: 'Deploys', channel: 'slack', to: 'C024BE91L' },
          sessionKey: 'deliver:slack:C024BE91L',
        },
      ],
    })
  })

  test('a deliver mapping without a template sends the payload, and without a recipient it sends to the channel `last`', async () => {
    const decision = await decideWith({ match: { path: 'in' }, action: 'deliver' })
    expect(decision).toMatchObject({
      actions: [{ action: { message: expect.stringContaining('api'), channel: 'last' }, sessionKey: 'deliver:last' }],
    })
  })

  test('a deliver mapping with a list of recipients makes one action for each of them, and each item of forEach goes to all of them', async () => {
    const decision = await decideWith({ ...deploys, to: [...chats] })
    expect(decision).toMatchObject({ actions: chats.map((chat) => ({ action: { message: 'api is up', ...chat } })) })
    const each = { ...deploys, messageTemplate: '{{items[0].n}}', forEach: 'items', to: [...chats] }
    const many = await decideWith(each, undefined, { items: [{ n: 1 }, { n: 2 }] })
    expect(many).toMatchObject({
      actions: [1, 2].flatMap((n) => chats.map((chat) => ({ action: { message: `${n}`, ...chat } }))),
    })
  })

  test('a transform can set the message and the recipients', async () => {
    expect(await decideWith({ ...deploys, to: [...chats] }, { message: 'Coded' })).toMatchObject({
      actions: chats.map((chat) => ({ action: { message: 'Coded', ...chat } })),
    })
    const one = await decideWith({ ...deploys, to: [...chats] }, { channel: 'discord' })
    expect(one).toMatchObject({ actions: [{ action: { channel: 'discord' } }] })
    expect(one).not.toMatchObject({ actions: [{ action: { to: expect.anything() } }] })
    expect(
      await decideWith(
        deploys,
        chats.map((chat) => ({ ...chat })),
      ),
    ).toMatchObject({
      actions: chats.map((chat) => ({ kind: 'deliver', action: chat })),
    })
    const odd = await decideWith(deploys, { to: 'a\nb'.padEnd(3_000, 'x') })
    expect(odd).toMatchObject({ actions: [{ sessionKey: expect.stringMatching(/^deliver:last:[\da-f]{16}$/) }] })
  })

  test('a transform can turn an agent action into a deliver action, and a deliver action into an agent action', async () => {
    const agent: MappingInput = { match: { path: 'in' }, messageTemplate: 'Look at {{service}}' }
    expect(await decideWith(agent, { kind: 'deliver', message: 'Up', to: 'C024BE91L' })).toMatchObject({
      actions: [{ kind: 'deliver', action: { message: 'Up', channel: 'last', to: 'C024BE91L' } }],
    })
    expect(await decideWith(deploys, { kind: 'agent', message: 'Why?' })).toMatchObject({
      actions: [{ kind: 'agent', action: { message: 'Why?', channel: 'last' } }],
    })
  })

  test('an agent mapping with a list of recipients is one run that delivers to all of them, unless its code names a single recipient', async () => {
    const agent: MappingInput = { match: { path: 'in' }, messageTemplate: 'Look at {{service}}', to: [...chats] }
    const [first, second] = chats
    expect(await decideWith(agent)).toMatchObject({
      actions: [{ kind: 'agent', action: { ...first, alsoTo: [second] } }],
    })
    expect(await decideWith(agent, { message: 'Coded' })).toMatchObject({
      actions: [{ action: { ...first, alsoTo: [second] } }],
    })
    for (const result of [{ to: 'C1' }, { channel: 'discord' }]) {
      const decision = await decideWith(agent, result)
      expect(decision).toMatchObject({ actions: [{ action: result }] })
      expect(decision).not.toMatchObject({ actions: [{ action: { alsoTo: expect.anything() } }] })
    }
    expect(await decideWith(agent, { alsoTo: [...chats] })).toMatchObject({ kind: 'park' })
  })

  test('a deliver mapping refuses a blank message of the sender, and parks the delivery if its code returns an invalid result', async () => {
    expect(await decideWith({ ...deploys, messageTemplate: '{{gone}}' })).toMatchObject({
      kind: 'refuse',
      problem: { code: 'payload-invalid', message: expect.stringContaining('messageTemplate') },
    })
    expect(await decideWith(deploys, { thinking: 'high' })).toMatchObject({
      kind: 'park',
      problem: { message: expect.stringContaining('It is a field of the action "agent": return kind: "agent" too.') },
    })
  })

  test('a deliver mapping has a flow, but none of the limits of an agent', async () => {
    const config = { limits: { gpu: { total: 1 } }, agents: { defaults: { limits: ['gpu'] } } }
    const flow = { onNew: 'replace', key: 'deploy:{{service}}', delay: '1m' } as const
    const findFlow = async (mapping: MappingInput) =>
      decideOn(toGeneration([mapping], { config }), toTestDelivery('in', payload))
    expect(await findFlow({ ...deploys, flow })).toMatchObject({
      actions: [{ flow: { key: 'deploy:api', settings: { onNew: 'replace', limits: [] } } }],
    })
    expect(await findFlow(deploys)).toMatchObject({ actions: [{ flow: undefined }] })
  })
})
