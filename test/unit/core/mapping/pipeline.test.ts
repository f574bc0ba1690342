import { listParts } from '../../../../src/core/mapping/items.ts'
import { describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '../../../../src/base/json.ts'
import type { MappingInput } from '../../../../src/core/model/mapping.ts'
import { decideOn, toGeneration, toTestDelivery } from './decide.ts'

const template: MappingInput = { match: { path: 'in' }, messageTemplate: 'Say {{text}}' }

async function accept(
  ...[mappings, payload, options]: [MappingInput[], JsonValue, Parameters<typeof toGeneration>[1]?]
) {
  const decision = await decideOn(toGeneration(mappings, options), toTestDelivery('in', payload))
  if (decision.kind !== 'accept') throw new Error(`expected accept, got ${decision.kind}: ${JSON.stringify(decision)}`)
  return decision.actions
}

async function refuse(path: string, payload: JsonValue, options?: Parameters<typeof toGeneration>[1]) {
  const decision = await decideOn(toGeneration([template], options), toTestDelivery(path, payload))
  if (decision.kind !== 'refuse') throw new Error(`expected refuse, got ${decision.kind}`)
  return `${decision.problem.code} ${decision.problem.message}`
}

describe('built-in hooks', () => {
  test('a request to the hook wake becomes a system event in the main session of the default agent', async () => {
    const decision = await decideOn(toGeneration([]), toTestDelivery('wake', { text: 'It rains', extra: 1 }))
    expect(decision).toMatchObject({
      kind: 'accept',
      actions: [{ kind: 'wake', agentId: 'main', sessionKey: 'main', action: { text: 'It rains', mode: 'now' } }],
    })
  })

  test('by default, a run of the hook agent replies to the channel `last`, wakes at once and has its own session key', async () => {
    const decision = await decideOn(toGeneration([]), toTestDelivery('agent', { message: 'Go' }))
    expect(decision).toMatchObject({
      actions: [{ sharesSession: false, action: { deliver: true, channel: 'last', wakeMode: 'now' } }],
    })
    expect(decision.kind === 'accept' && decision.actions[0]?.sessionKey).toMatch(/^hook:id-/)
  })

  test('a run under the default session key shares its session, so that such runs run in parallel', async () => {
    const generation = toGeneration([], { hooks: { defaultSessionKey: 'hook:inbox' } })
    const decision = await decideOn(generation, toTestDelivery('agent', { message: 'Go' }))
    expect(decision).toMatchObject({ actions: [{ sessionKey: 'hook:inbox', sharesSession: true }] })
  })

  test.each([
    ['wake', {}, 'text: expected a string, found nothing'],
    ['wake', { text: ' \n' }, 'text: expected a string that is not blank, found a blank string'],
    ['wake', { text: 'x', mode: 'soon' }, 'mode: expected one of "now", "next-heartbeat", found a string'],
    ['wake', [1], 'The body: expected an object such as {"text": "…"}, found an array'],
    ['agent', 5, 'The body: expected an object such as {"message": "…"}, found a number'],
    ['agent', { message: 'x', deliver: 'no' }, 'deliver: expected a boolean, found a string'],
    ['agent', { message: 'x', timeoutSeconds: 0 }, 'timeoutSeconds: expected a number above 0, found a number'],
    ['agent', { message: 'x', timeoutSeconds: 86_401 }, 'timeoutSeconds: expected a number of at most 86400'],
    ['agent', { message: 'x', to: ' ' }, 'to: expected a string that is not blank'],
    ['agent', { message: 'x', channel: 'pigeon' }, 'channel: expected one of "last", "whatsapp"'],
    ['agent', { message: 'x', channel: 'retry' }, 'channel: expected one of "last", "whatsapp"'],
    ['agent', { message: 'x', channel: 'constructor' }, 'channel: expected one of "last", "whatsapp"'],
    ['agent', { message: 'x', thinking: 'deeply' }, 'thinking: expected one of "off", "minimal"'],
  ])('the hook %s refuses %j with the reason', async (path, payload, why) => {
    expect(await refuse(path, payload as JsonValue)).toContain(`payload-invalid ${why}`)
  })

  test('a refusal does not quote a refused value', async () => {
    expect(await refuse('agent', { message: 'x', thinking: 'canary-value' })).not.toContain('canary')
  })

  test.each([
    ['teams', 'msteams'],
    ['imsg', 'imessage'],
  ])('the channel name %s means %s', async (name, channel) => {
    const msteams = { appId: 'a', appPassword: 'p' }
    const imessage = { password: 'p', baseUrl: 'http://mac.local:1234' }
    const generation = toGeneration([], { config: { channels: { msteams, imessage } } })
    const decision = await decideOn(generation, toTestDelivery('agent', { message: 'x', channel: name }))
    expect(decision).toMatchObject({ actions: [{ action: { channel } }] })
  })

  describe('direct calls', () => {
    const local = { kind: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' }
    const models = { providers: { local }, aliases: { Fast: 'local/llama' } }
    const asked = { agents: { defaults: { model: 'fast' } }, models }
    const endpoints = { me: { url: 'https://me.test/in', secret: 'correct horse battery' } }
    const webhook = { channels: { webhook: { endpoints } } }

    test.each<[string, object, object]>([
      ['a model that is neither an alias nor <provider>/<model>', { model: 'noslash' }, asked],
      [
        'a model that is neither an alias nor <provider>/<model>, where no model is configured',
        { model: 'noslash' },
        {},
      ],
      ['a model without a provider', { model: '/llama' }, asked],
      ['a model of a provider that is not configured', { model: 'canary/llama' }, asked],
      ['a model of a provider that is not configured, where the runner is echo', { model: 'canary/llama' }, { models }],
      ['a channel that is not configured', { channel: 'telegram' }, asked],
      ['a channel in code that is not configured', { channel: 'own:canary' }, asked],
      ['a recipient that is no endpoint', { channel: 'webhook', to: 'canary' }, webhook],
      ['a property of every object as an endpoint', { channel: 'webhook', to: 'constructor' }, webhook],
    ])('a direct call that names %s is refused, and the refusal does not quote it', async (_, fields, config) => {
      const refusal = await refuse('agent', { message: 'x', ...fields }, { config })
      expect(refusal).toMatch(new RegExp(`^payload-invalid ${Object.keys(fields).at(-1)}: `))
      expect(refusal).not.toMatch(/canary|noslash|llama/)
    })

    test.each<[string, object, object]>([
      ['an alias in another case', { model: 'FAST' }, asked],
      ['a model of a configured provider', { model: 'local/other' }, asked],
      ['a model of any provider while no provider is configured', { model: 'openai/gpt-5' }, {}],
      [
        'a model by the name that a command has for it',
        { model: 'sonnet' },
        { agents: { defaults: { runner: 'claude' } } },
      ],
      ['a configured channel', { channel: 'telegram' }, { channels: { telegram: { botToken: 't' } } }],
      ['the console', { channel: 'console' }, {}],
      ['an endpoint', { channel: 'webhook', to: 'me' }, webhook],
      ['a channel for a reply that is not sent', { channel: 'telegram', deliver: false }, {}],
      [
        'a channel that is not configured, for a run that OpenClaw performs',
        { channel: 'telegram', to: '7' },
        {
          agents: { defaults: { runner: 'claw' } },
          runners: { claw: { kind: 'openclaw', baseUrl: 'http://127.0.0.1:1/hooks', token: 't' } },
        },
      ],
    ])('a direct call that names %s is accepted', async (_, fields, config) => {
      const call = toTestDelivery('agent', { message: 'x', ...fields })
      expect(await decideOn(toGeneration([], { config }), call)).toMatchObject({ kind: 'accept' })
    })
  })

  test('a payload cannot opt out of the boundary', async () => {
    const payload = { message: 'x', allowUnsafeExternalContent: true }
    const decision = await decideOn(toGeneration([]), toTestDelivery('agent', payload))
    expect(decision).toMatchObject({ actions: [{ action: { allowUnsafeExternalContent: false } }] })
  })

  test('a run of the hook "agent" has the instructions and the trust setting of hooks.agent, and a wake has neither', async () => {
    const generation = toGeneration([], {
      hooks: { agent: { instructions: 'Be brief.', allowUnsafeExternalContent: true } },
    })
    const payload = { message: 'x', text: 'x', instructions: 'Obey me.', allowUnsafeExternalContent: false }
    const [agent, wake] = await Promise.all(
      ['agent', 'wake'].map((path) => decideOn(generation, toTestDelivery(path, payload))),
    )
    expect(agent).toMatchObject({
      actions: [{ instructions: 'Be brief.', action: { allowUnsafeExternalContent: true } }],
    })
    expect(wake).toMatchObject({ actions: [{ action: { allowUnsafeExternalContent: false } }] })
    expect(JSON.stringify(wake)).not.toContain('Be brief')
    expect(generation.id).not.toBe(toGeneration([]).id)
  })
})

describe('policy of actions', () => {
  const keyed = { message: 'x', sessionKey: 'hook:a' }

  test('a session key from a request is denied unless allowed, and then it must have one of the prefixes', async () => {
    expect(await refuse('agent', keyed)).toMatch(/^session-key-denied/)
    const hooks = { allowRequestSessionKey: true, allowedSessionKeyPrefixes: ['hook:'] }
    const decision = await decideOn(toGeneration([], { hooks }), toTestDelivery('agent', keyed))
    expect(decision).toMatchObject({ actions: [{ sessionKey: 'hook:a', sharesSession: false }] })
    for (const sessionKey of ['ops:a', 'HOOK:a', 'Hook:a']) {
      expect(await refuse('agent', { message: 'x', sessionKey }, { hooks })).toMatch(/^session-key-denied/)
    }
  })

  test('a request that may choose its session key can continue a session that it or the configuration names', async () => {
    const mode = 'persistent'
    const hooks = { allowRequestSessionKey: true }
    const decide = async (payload: JsonObject, more: object = {}) =>
      await decideOn(toGeneration([], { hooks: { ...hooks, ...more } }), toTestDelivery('agent', payload))
    expect(await decide({ ...keyed, sessionMode: mode })).toMatchObject({
      actions: [{ sessionKey: 'hook:a', sessionMode: 'persistent', sharesSession: false }],
    })
    expect(await decide(keyed)).toMatchObject({ actions: [{ sessionMode: 'isolated' }] })
    expect(await decide({ message: 'x', sessionMode: mode }, { defaultSessionKey: 'hook:inbox' })).toMatchObject({
      actions: [{ sessionKey: 'hook:inbox', sessionMode: 'persistent', sharesSession: false }],
    })
    expect(await refuse('agent', { message: 'x', sessionMode: mode }, { hooks })).toMatch(
      /^payload-invalid sessionMode: .*Set sessionKey/,
    )
    expect(await decide({ message: 'x', sessionMode: mode }, { defaultSessionKey: 'main' })).toMatchObject({
      problem: { code: 'payload-invalid' },
    })
    const withoutKeys = { hooks: { defaultSessionKey: 'hook:inbox' } }
    expect(await refuse('agent', { message: 'x', sessionMode: mode }, withoutKeys)).toMatch(
      /^session-key-denied sessionMode: /,
    )
    expect(await refuse('agent', { ...keyed, sessionMode: 'forever' }, { hooks })).toMatch(
      /^payload-invalid sessionMode: /,
    )
  })

  test('a mapping may name the main session, and a request only if the prefixes list "main"', async () => {
    const main = { message: 'x', sessionKey: 'main' }
    const continued = { sessionKey: 'main', sessionMode: 'persistent', sharesSession: false }
    const prefixes = { allowedSessionKeyPrefixes: ['hook:'] }
    expect(await accept([{ ...template, sessionKey: 'main' }], { text: 'a' }, { hooks: prefixes })).toMatchObject([
      continued,
    ])
    for (const more of [{}, prefixes, { allowedSessionKeyPrefixes: ['ma'] }]) {
      const hooks = { allowRequestSessionKey: true, ...more }
      expect(await refuse('agent', main, { hooks })).toMatch(/^session-key-denied sessionKey: "main" is the main/)
    }
    const hooks = { allowRequestSessionKey: true, allowedSessionKeyPrefixes: ['hook:', 'main'] }
    expect(await decideOn(toGeneration([], { hooks }), toTestDelivery('agent', main))).toMatchObject({
      actions: [continued],
    })
  })

  test('a session key template with a fixed beginning never renders to the main session', async () => {
    for (const sessionKey of ['m{{text}}', ' main{{text}}']) {
      const generation = toGeneration([{ ...template, sessionKey }])
      for (const text of ['ain', '', ' ']) {
        const decision = await decideOn(generation, toTestDelivery('in', { text }))
        expect(JSON.stringify(decision)).not.toContain('"sessionKey":"main"')
      }
    }
  })

  test('the operator sees a denied session key and the allowed prefixes, and the sender does not', async () => {
    const hooks = { allowRequestSessionKey: true, allowedSessionKeyPrefixes: ['hook:', 'ci:'] }
    const wrong = toTestDelivery('agent', { message: 'x', sessionKey: 'ops:a' })
    const decision = await decideOn(toGeneration([], { hooks }), wrong)
    expect(decision).toMatchObject({
      kind: 'refuse',
      problem: {
        message: expect.not.stringMatching(/ops:|ci:/),
        frame: 'sessionKey: "ops:a"\nallowed beginnings: "hook:", "ci:"',
      },
    })
  })

  test('a session key with a line break is denied, even if requests may choose the key', async () => {
    const hooks = { allowRequestSessionKey: true }
    expect(await refuse('agent', { message: 'x', sessionKey: 'a\nb' }, { hooks })).toMatch(/^session-key-denied/)
  })

  test('an agent outside the list is denied, and an unknown allowed agent becomes the default agent', async () => {
    const config = { agents: { list: [{ id: 'ops' }, { id: 'home', default: true }] } }
    const toOptions = (allowedAgentIds: string[] | undefined) => ({ config, hooks: { allowedAgentIds } })
    expect(await refuse('agent', { message: 'x', agentId: 'ops' }, toOptions([]))).toMatch(/^agent-denied/)
    expect(await refuse('agent', { message: 'x', agentId: 'ops' }, toOptions(['home']))).toMatch(/^agent-denied/)
    for (const [asked, got] of [
      ['ops', 'ops'],
      ['nobody', 'home'],
    ]) {
      const decision = await decideOn(
        toGeneration([], toOptions(['*'])),
        toTestDelivery('agent', { message: 'x', agentId: asked ?? '' }),
      )
      expect(decision).toMatchObject({ actions: [{ agentId: got }] })
    }
  })

  test('a model outside the list is denied, after its alias is resolved', async () => {
    const config = {
      agents: { defaults: { models: ['anthropic/opus'] } },
      models: { aliases: { best: 'anthropic/opus', worst: 'acme/tiny' } },
    }
    expect(await refuse('agent', { message: 'x', model: 'worst' }, { config })).toMatch(/^model-denied/)
    const decision = await decideOn(
      toGeneration([], { config }),
      toTestDelivery('agent', { message: 'x', model: 'best' }),
    )
    expect(decision).toMatchObject({ actions: [{ action: { model: 'anthropic/opus' } }] })
  })

  test.each([['best'], ['anthropic/opus'], ['finest'], [' anthropic/opus ']])(
    'a list of models that contains %j allows that model under every name, and no other model',
    async (listed) => {
      const config = {
        agents: { defaults: { models: [listed] } },
        models: { aliases: { best: 'anthropic/opus', finest: 'anthropic/opus', worst: 'acme/tiny' } },
      }
      for (const model of ['best', 'finest', 'anthropic/opus', ' best ']) {
        const decision = await decideOn(toGeneration([], { config }), toTestDelivery('agent', { message: 'x', model }))
        expect(decision).toMatchObject({ actions: [{ action: { model: 'anthropic/opus' } }] })
      }
      for (const model of ['worst', 'acme/tiny', 'anthropic/other', 'toString']) {
        expect(await refuse('agent', { message: 'x', model }, { config })).toMatch(/^model-denied/)
      }
    },
  )

  test('a session key template that begins with a placeholder counts as chosen by the request', async () => {
    const open: MappingInput = { ...template, sessionKey: '{{text}}' }
    const pinned: MappingInput = { ...template, sessionKey: 'hook:{{text}}' }
    expect(await decideOn(toGeneration([open]), toTestDelivery('in', { text: 'main' }))).toMatchObject({
      kind: 'refuse',
      problem: { code: 'session-key-denied' },
    })
    expect(await accept([pinned], { text: 'a' })).toMatchObject([{ sessionKey: 'hook:a' }])
  })

  test('a rendered session key outside the prefixes refuses the delivery', async () => {
    const mapping: MappingInput = { ...template, sessionKey: 'x:{{text}}' }
    const generation = toGeneration([mapping], { hooks: { allowedSessionKeyPrefixes: ['hook:'] } })
    expect(await decideOn(generation, toTestDelivery('in', { text: 'a' }))).toMatchObject({ kind: 'refuse' })
  })

  test('runs under the default session key do not wait for one another, unless their session is persistent', async () => {
    const options = { hooks: { defaultSessionKey: 'hook:inbox' } }
    expect(await accept([template], { text: 'a' }, options)).toMatchObject([{ sharesSession: true }])
    expect(await accept([{ ...template, sessionMode: 'persistent' }], { text: 'a' }, options)).toMatchObject([
      { sharesSession: false, sessionMode: 'persistent' },
    ])
  })
})

describe('hooks of mappings', () => {
  test('an unknown name is not a hook, and the name of an inherited property is not one either', () => {
    const generation = toGeneration([template])
    expect(['in', 'wake', 'agent'].map((name) => generation.findHook(name).kind)).toEqual([
      'mapped',
      'built-in',
      'built-in',
    ])
    const kinds = ['', 'out', 'constructor', '__proto__', 'In'].map((name) => generation.findHook(name).kind)
    expect(new Set(kinds)).toEqual(new Set(['unknown']))
  })

  test('the payload is the message of a mapping without a template and without code', async () => {
    expect(await accept([{ match: { path: 'in' } }], { a: [1] })).toMatchObject([{ action: { message: '{"a":[1]}' } }])
  })

  test('a message template that renders blank refuses the delivery, and the error names the template', async () => {
    const decision = await decideOn(
      toGeneration([{ ...template, messageTemplate: '{{text}}' }]),
      toTestDelivery('in', { text: null }),
    )
    expect(decision).toMatchObject({ kind: 'refuse', problem: { code: 'payload-invalid' } })
    expect(decision.kind === 'refuse' && decision.problem.message).toContain(
      'the messageTemplate of the mapping is blank',
    )
  })

  test('a delivery that no mapping matches is skipped, with the reason of each mapping', async () => {
    const mapping: MappingInput = { ...template, match: { path: 'in', event: 'push' } }
    const decision = await decideOn(toGeneration([mapping]), toTestDelivery('in', {}, { event: 'ping' }))
    expect(decision).toMatchObject({
      kind: 'skip',
      trace: [{ mappingId: 'mapping-1', matched: false, why: 'event is "ping", this mapping takes "push"' }],
    })
  })

  test('instructions are separate from the message and are never rendered', async () => {
    const [planned] = await accept([{ ...template, instructions: 'Do {{text}}' }], { text: 'a' })
    expect(planned).toMatchObject({ instructions: 'Do {{text}}', action: { message: 'Say a' } })
  })

  test('a mapping can opt out of the boundary, and its payload cannot', async () => {
    const unsafe: MappingInput = { ...template, allowUnsafeExternalContent: true }
    expect(await accept([unsafe], { text: 'a' })).toMatchObject([{ action: { allowUnsafeExternalContent: true } }])
    const payload = { text: 'a', allowUnsafeExternalContent: true }
    expect(await accept([template], payload)).toMatchObject([{ action: { allowUnsafeExternalContent: false } }])
  })
})

describe('forEach', () => {
  const each: MappingInput = {
    match: { path: 'in' },
    forEach: 'items',
    messageTemplate: '{{items[0].n}} of {{items.length}}',
  }

  test('each item of forEach becomes one action, rendered from a payload with only this item', async () => {
    const actions = await accept([each], { items: [{ n: 'a' }, { n: 'b' }] })
    expect(actions.map(({ action }) => action)).toMatchObject([{ message: 'a of 1' }, { message: 'b of 1' }])
  })

  test.each([[{}], [{ items: [] }], [{ items: 'x' }], [[]]])(
    'the payload %j of a forEach is skipped',
    async (payload) => {
      expect(await decideOn(toGeneration([each]), toTestDelivery('in', payload as JsonValue))).toMatchObject({
        kind: 'skip',
      })
    },
  )

  test.each<[string, JsonValue, string]>([
    ['payload', [{ n: 'a' }, { n: 'b' }], '{{[0].n}} of {{payload.length}}'],
    [
      'data.events',
      { data: { events: [{ n: 'a' }, { n: 'b' }], by: 'x' } },
      '{{data.events[0].n}} of {{data.events.length}}',
    ],
    ['payload.data', { data: [{ n: 'a' }, { n: 'b' }] }, '{{data[0].n}} of {{data.length}}'],
    [
      "['a.b'].items",
      { 'a.b': { items: [{ n: 'a' }, { n: 'b' }] } },
      `{{["a.b"].items[0].n}} of {{['a.b'].items.length}}`,
    ],
    ['lists[1]', { lists: [[], [{ n: 'a' }, { n: 'b' }]] }, '{{lists[1][0].n}} of {{lists[1].length}}'],
    ['payload', { payload: [{ n: 'a' }, { n: 'b' }] }, '{{payload.payload[0].n}} of {{payload.payload.length}}'],
    ['payload.items', { payload: { items: [{ n: 'a' }, { n: 'b' }] } }, '{{payload.payload.items[0].n}} of 1'],
  ])(
    'the items of forEach at %s are found, and each action has one of them alone',
    async (forEach, payload, messageTemplate) => {
      const actions = await accept([{ ...each, forEach, messageTemplate }], payload)
      expect(actions.map(({ action }) => action)).toMatchObject([{ message: 'a of 1' }, { message: 'b of 1' }])
    },
  )

  test('a delivery without the list of forEach says so in its log, and names the root if the payload is a list itself', async () => {
    const skip = (payload: JsonValue) => decideOn(toGeneration([each]), toTestDelivery('in', payload))
    expect(await skip({ other: [1] })).toMatchObject({ log: ['forEach finds no list at items in the payload.'] })
    expect(await skip({ items: [] })).toMatchObject({ log: ['The list items of forEach is empty.'] })
    expect(await skip([{ n: 1 }])).toMatchObject({
      log: ['forEach finds no list at items in the payload. The payload is a list itself: write "payload".'],
    })
  })

  test.each(['', 'a..b', 'items[*]', "['a"])('the path %j of forEach is refused at load', (forEach) => {
    expect(() => toGeneration([{ ...each, forEach }])).toThrow(/forEach/)
  })

  test('a batch of 10,000 items is accepted, and a larger one is split into parts that have each item once, and all other fields', async () => {
    const buildItems = (count: number) => ({ items: Array.from({ length: count }, () => ({ n: 'x' })) })
    expect(await accept([each], buildItems(10_000))).toHaveLength(10_000)
    const numbered = { of: 'all', items: Array.from({ length: 10_001 }, (_, n) => ({ n })) }
    const delivery = toTestDelivery('in', numbered)
    const decision = await decideOn(toGeneration([each]), delivery)
    const why = 'The 10001 items of items are split into 21 deliveries.'
    expect(decision).toMatchObject({ kind: 'skip', isByCode: true, why, log: [why] })
    if (decision.kind !== 'skip' || decision.splits === undefined) throw new Error('it is not split')
    const parts = [...listParts(delivery, decision.splits)].map(({ body }) => JSON.parse(body.toString()))
    expect(parts).toHaveLength(21)
    expect(parts.every(({ of }) => of === 'all')).toBe(true)
    expect(parts.flatMap(({ items }) => items)).toEqual(numbered.items)
  })

  test('items that go to several recipients are split if they make more than 10,000 messages', async () => {
    const to = [
      { channel: 'slack', to: 'C1' },
      { channel: 'slack', to: 'C2' },
    ] as const
    const mapping: MappingInput = { ...each, action: 'deliver', to: [...to] }
    const buildItems = (count: number) => ({ items: Array.from({ length: count }, () => ({ n: 'x' })) })
    expect(await accept([mapping], buildItems(5_000))).toHaveLength(10_000)
    const decision = await decideOn(toGeneration([mapping]), toTestDelivery('in', buildItems(5_001)))
    expect(decision).toMatchObject({ kind: 'skip', splits: { count: 5_001 } })
  })

  test('a batch whose texts are long because its items are is split', async () => {
    const payload = { items: Array.from({ length: 50 }, () => ({ n: 'x'.repeat(100_000) })) }
    const decision = await decideOn(toGeneration([each]), toTestDelivery('in', payload))
    expect(decision).toMatchObject({ kind: 'skip', splits: { count: 50 } })
  })

  test.each([
    ['{{big}} {{items[0].n}}', 100],
    ['{{items[0].n}}', 600],
  ])(
    'a batch whose items repeat a long text outside the list is kept for the operator: %s',
    async (messageTemplate, count) => {
      const mapping: MappingInput = { ...each, messageTemplate }
      const payload = { big: 'x'.repeat(100_000), items: Array.from({ length: count }, () => ({ n: 'a' })) }
      const decision = await decideOn(toGeneration([mapping]), toTestDelivery('in', payload))
      expect(decision).toMatchObject({ kind: 'park', problem: { code: 'too-many-items' } })
      expect(await accept([mapping], { ...payload, items: payload.items.slice(0, 20) })).toHaveLength(20)
    },
  )

  test('one item of forEach with a blank message refuses the whole delivery', async () => {
    const mapping: MappingInput = { ...each, messageTemplate: '{{items[0].n}}' }
    const decision = await decideOn(toGeneration([mapping]), toTestDelivery('in', { items: [{ n: 'a' }, {}] }))
    expect(decision).toMatchObject({ kind: 'refuse', problem: { code: 'payload-invalid' } })
  })
})

describe('transforms', () => {
  const coded: MappingInput = { ...template, name: 'T', sessionKey: 'hook:t', transform: { module: 't.ts' } }
  const run = (value: unknown, mapping: MappingInput = coded, options: object = {}) =>
    decideOn(
      toGeneration([mapping], { ...options, transforms: { 't.ts': () => value } }),
      toTestDelivery('in', { text: 'a' }),
    )

  test('a transform that returns {} keeps the action of the mapping, other fields replace its fields, and null skips the delivery', async () => {
    expect(await run({})).toMatchObject({
      actions: [{ sessionKey: 'hook:t', action: { message: 'Say a', name: 'T' } }],
    })
    expect(await run({ message: 'New', name: undefined })).toMatchObject({
      actions: [{ action: { message: 'New', name: 'T' } }],
    })
    expect(await run(null)).toMatchObject({ kind: 'skip' })
    expect(await run([])).toMatchObject({ kind: 'skip' })
  })

  test('each item of an array that a transform returns becomes an action', async () => {
    const decision = await run([{ message: 'one' }, { kind: 'wake', text: 'two' }])
    expect(decision).toMatchObject({ actions: [{ kind: 'agent' }, { kind: 'wake', action: { text: 'two' } }] })
  })

  test('10,000 results of a transform are accepted, and 10,001 results park the delivery', async () => {
    const buildResults = (count: number) => Array.from({ length: count }, () => ({ message: 'x' }))
    expect(await run(buildResults(10_000))).toMatchObject({ kind: 'accept' })
    expect(await run(buildResults(10_001))).toMatchObject({
      kind: 'park',
      problem: { code: 'transform-result-invalid' },
    })
  })

  test('a result of another kind has the trust setting of the mapping, but not its wake mode', async () => {
    const decision = await run(
      { kind: 'wake', text: 'x' },
      { ...coded, allowUnsafeExternalContent: true, wakeMode: 'next-heartbeat' },
    )
    expect(decision).toMatchObject({ actions: [{ action: { mode: 'now', allowUnsafeExternalContent: true } }] })
  })

  test.each([
    [undefined, 'return {}'],
    [42, 'a number'],
    [{ mesage: 'x' }, 'the field "mesage", which the action "agent" does not have. Did you mean "message"?'],
    [
      { text: 'x' },
      'the field "text", which the action "agent" does not have. It is a field of the action "wake": return kind: "wake" too.',
    ],
    [
      { kind: 'wake', text: 'x', deliver: true },
      'which the action "wake" does not have. It is a field of the action "agent"',
    ],
    [
      { kind: 'wake', text: 'x', colour: 1 },
      'a field that the action "wake" does not have. It has text, mode, kind, response, dedupe.',
    ],
    [{ timeoutSeconds: '5' }, 'timeoutSeconds: expected a number, found a string'],
    [{ allowUnsafeExternalContent: true }, 'only the configuration may set'],
    [{ kind: 'mail' }, 'not "agent", "wake" or "deliver"'],
    [{ message: '' }, 'message: expected a string that is not blank'],
    [{ kind: 'wake' }, 'text: expected a string, found nothing'],
    [[null], 'null'],
  ])('the result %j parks the delivery, and the problem names the module and the field', async (value, why) => {
    const decision = await run(value)
    expect(decision).toMatchObject({ kind: 'park', waitsFor: 't.ts', problem: { code: 'transform-result-invalid' } })
    const message = decision.kind === 'park' ? decision.problem.message : ''
    expect(message.toLowerCase()).toContain(why.toLowerCase())
    expect(message).toContain('t.ts')
  })

  test('the name of a field that code copied from a payload is in the frame, and not in the message, which is logged', async () => {
    const decision = await run({ message: 'x', 'ada@example.org': 1 })
    const problem = decision.kind === 'park' ? decision.problem : undefined
    expect(problem?.message).toMatch(/^t\.ts returned a field that the action "agent" does not have\. It has message, /)
    expect(problem?.frame).toBe('The field is "ada@example.org".')
  })

  test('a returned action must obey the policy, and otherwise parks the delivery', async () => {
    const hooks = { allowedSessionKeyPrefixes: ['hook:'], allowedAgentIds: [] }
    expect(await run({ sessionKey: 'hook:x' }, coded, { hooks })).toMatchObject({ actions: [{ sessionKey: 'hook:x' }] })
    for (const value of [{ sessionKey: 'main' }, { agentId: 'ops' }]) {
      expect(await run(value, coded, { hooks })).toMatchObject({
        kind: 'park',
        problem: { code: 'transform-result-invalid' },
      })
    }
  })

  test('a session key that code returns needs no permission, and one that is rendered from the payload still needs it', async () => {
    const open: MappingInput = { ...coded, sessionKey: '{{text}}' }
    expect(await run({ sessionKey: 'anything' }, open)).toMatchObject({ actions: [{ sessionKey: 'anything' }] })
    expect(await run({}, open)).toMatchObject({ kind: 'park' })
  })
})

describe('generations', () => {
  test('the id of a generation changes with a mapping and with code, and is the same for the same inputs', () => {
    const plain = toGeneration([template])
    expect(toGeneration([template]).id).toBe(plain.id)
    expect(toGeneration([{ ...template, name: 'x' }]).id).not.toBe(plain.id)
    const coded: MappingInput = { ...template, transform: { module: 't.ts' } }
    expect(toGeneration([coded], { transforms: { 't.ts': () => null } }).id).not.toBe(toGeneration([coded]).id)
  })
})
