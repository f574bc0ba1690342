// The flow that a mapping, the built-in hook or an agent gives to a request, and the flow sections that are refused.
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import { ConfigSchema } from '../../../../src/gateway/config/keys.ts'
import { findConfigIssues } from '../../../../src/model/config/rules.ts'
import { decideOn, toGeneration, toTestDelivery } from './decide.ts'

const limits = { openai: { total: 8 }, gpu: { total: 1 } }

async function findFlow(generation: ReturnType<typeof toGeneration>, path: string, payload: JsonValue) {
  const decision = await decideOn(generation, toTestDelivery(path, payload))
  if (decision.kind !== 'accept') throw new Error(decision.kind)
  return decision.actions.map((action) => (action.kind === 'agent' ? action.flow : undefined))
}

const mapping = { match: { path: 'pr' }, id: 'pr', messageTemplate: 'Review', sessionKey: 'hook:{{n}}' }

describe('the flow of a run', () => {
  test('the keys of a flow are rendered from the payload, and the session key is the default key', async () => {
    const flow = { key: 'pr:{{n}}', rateLimit: { limit: 2, period: '1h', key: '{{who}}' }, expires: '2h' }
    const [planned] = await findFlow(toGeneration([{ ...mapping, flow }]), 'pr', { n: 7, who: 'ada' })
    expect(planned).toMatchObject({ ring: 'pr', key: 'pr:7', expiresMs: 7_200_000 })
    expect(planned?.settings.rate?.name).toContain('ada')
    const [byDefault] = await findFlow(toGeneration([{ ...mapping, flow: { total: 1 } }]), 'pr', { n: 7 })
    expect(byDefault?.key).toBe('hook:7')
  })

  test('a run without a flow has no limits, and a run of an agent with limits has those of the agent', async () => {
    expect(await findFlow(toGeneration([mapping]), 'pr', { n: 7 })).toEqual([undefined])
    const agents = { list: [{ id: 'reviewer', limits: ['gpu'] }, { id: 'other' }] }
    const config = { limits, agents }
    const [alone] = await findFlow(toGeneration([mapping], { config }), 'pr', { n: 7 })
    expect(alone).toMatchObject({ ring: 'pr', key: 'hook:7', settings: { limits: ['gpu'], perKey: 100_000 } })
    const flow = { limits: ['openai', 'gpu'], perKey: 2 }
    const [both] = await findFlow(toGeneration([{ ...mapping, flow }], { config }), 'pr', { n: 7 })
    expect(both?.settings).toMatchObject({ limits: ['openai', 'gpu'], perKey: 2 })
    const other = { ...mapping, agentId: 'other' }
    expect(await findFlow(toGeneration([other], { config }), 'pr', { n: 7 })).toEqual([undefined])
  })

  test('hooks.agent.flow is the flow of the built-in hook, and an agent adds its limits to that flow too', async () => {
    const hooks = { agent: { flow: { key: 'for:{{name}}', onNew: 'replace', limits: ['openai'] } } }
    const config = { limits, agents: { defaults: { limits: ['gpu'] } } }
    const [planned] = await findFlow(toGeneration([], { hooks, config }), 'agent', { message: 'x', name: 'CI' })
    expect(planned).toMatchObject({
      ring: 'hook/agent',
      key: 'for:CI',
      settings: { onNew: 'replace', limits: ['openai', 'gpu'] },
    })
    expect(await findFlow(toGeneration([]), 'agent', { message: 'x' })).toEqual([undefined])
  })

  test('a request whose payload leaves the key blank is refused', async () => {
    const hooks = { agent: { flow: { key: '{{name}}' } } }
    expect(await decideOn(toGeneration([], { hooks }), toTestDelivery('agent', { message: 'x' }))).toMatchObject({
      kind: 'refuse',
      problem: { code: 'payload-invalid' },
    })
  })

  test('the flow that a transform returns replaces that of its mapping, and its keys are not rendered as templates', async () => {
    const flow = { key: 'pr:{{n}}', onNew: 'replace', total: 3 } as const
    const returned = { key: ' {{n}} ', delay: '5s', rateLimit: { limit: 2, period: '1h', key: '{{who}}' } }
    const coded = { ...mapping, flow, transform: { module: 't.ts' } }
    const findWith = async (value: object) =>
      (
        await findFlow(toGeneration([coded], { config: { limits }, transforms: { 't.ts': () => value } }), 'pr', {
          n: 7,
        })
      )[0]
    const replaced = await findWith({ flow: returned })
    expect(replaced).toMatchObject({
      ring: 'pr',
      key: '{{n}}',
      settings: { onNew: 'queue', delayMs: 5_000, maxDelayMs: 50_000 },
    })
    expect(replaced?.settings.total).toBeUndefined()
    expect(replaced?.settings.rate?.name).toContain('{{who}}')
    expect(await findWith({ flow: { limits: ['gpu'] } })).toMatchObject({
      key: 'hook:7',
      settings: { limits: ['gpu'] },
    })
    expect(await findWith({ message: 'x' })).toMatchObject({
      key: 'pr:7',
      settings: { onNew: 'replace', total: 3 },
    })
  })

  test.each([
    ['an unknown limit', { limits: ['opneai'] }, 'flow.limits: "opneai" is not a name in limits'],
    ['a key that is blank', { key: '  ' }, 'flow.key: expected'],
    ['a key that is too long', { key: 'k'.repeat(5_000) }, 'flow.key: expected'],
    ['an unknown word of onNew', { onNew: 'replcae' }, 'flow.onNew: '],
    ['an unknown field', { onnew: 'replace' }, '"onnew"'],
    ['cancelOn, which only the configuration may set', { cancelOn: { event: 'x' } }, '"cancelOn"'],
    ['an invalid duration', { delay: 'soon' }, 'flow.delay: '],
  ])('a transform that returns a flow with %s parks the delivery with the reason', async (_, flow, reason) => {
    const generation = toGeneration([{ ...mapping, transform: { module: 't.ts' } }], {
      config: { limits },
      transforms: { 't.ts': () => ({ flow }) },
    })
    const decision = await decideOn(generation, toTestDelivery('pr', { n: 7 }))
    expect(decision).toMatchObject({
      kind: 'park',
      waitsFor: 't.ts',
      problem: { code: 'transform-result-invalid' },
    })
    // the name of an unknown field may come from the payload, so only the frame has it
    const { message, frame } = decision.kind === 'park' ? decision.problem : {}
    expect(`${message}\n${frame}`).toContain(reason)
  })

  test('an invalid template in hooks.agent.flow is refused with its place', () => {
    expect(() => toGeneration([], { hooks: { agent: { flow: { key: '{{name' } } } })).toThrow(/^hooks\.agent\.flow: /)
  })
})

describe('a flow that cannot take effect is refused with the reason', () => {
  const find = (hooks: object, config: object = {}) =>
    findConfigIssues(
      ConfigSchema.parse({ limits, ...config, hooks: { enabled: true, token: 'hook-secret-0123456789', ...hooks } }),
    ).map(({ text }) => text)
  const toHooks = (flow: object, over: object = {}) => ({ mappings: [{ ...mapping, flow, ...over }] })

  test.each([
    [toHooks({ delay: '30s', maxDelay: '30s' }), /flow\.maxDelay must be greater than delay/],
    [toHooks({ maxDelay: '30s' }), /flow\.maxDelay needs delay/],
    [toHooks({ delay: '30s', expires: '30s' }), /flow\.expires must be greater than delay/],
    [toHooks({ onNew: 'gather', perKey: 2 }), /flow\.perKey must be 1 with "gather"/],
    [toHooks({ onNew: 'replace', key: 'all' }), /flow\.key must tell requests apart: with "replace"/],
    [toHooks({ onNew: 'replace', key: '{{ path }}:{{source | default: "x"}}:{{now}}' }), /flow\.key must tell/],
    [toHooks({ onNew: 'replace' }, { sessionKey: 'hook:all' }), /flow\.key must tell requests apart/],
    [toHooks({ key: 'all', cancelOn: { event: 'x' } }), /flow\.key must tell requests apart: a request that matches/],
    [toHooks({ cancelOn: {} }), /flow\.cancelOn must have at least one condition/],
    [toHooks({ onFull: 'refuse' }), /flow\.onFull is "refuse", so maxQueued must say/],
    [toHooks({ limits: ['gpu', 'gpu'] }), /flow\.limits\[1\] names "gpu" a second time/],
    [toHooks({ limits: ['opneai'] }), /flow\.limits\[0\] is not a name in limits\. It has "openai", "gpu"\./],
    [
      toHooks({}, { action: 'wake', textTemplate: 'x', messageTemplate: undefined, sessionKey: undefined }),
      /flow is only for the action/,
    ],
    [{ agent: { flow: { onNew: 'replace' } } }, /hooks\.agent\.flow\.key must tell requests apart/],
    [{ agent: { flow: { limits: ['x'] } } }, /hooks\.agent\.flow\.limits\[0\] is not a name in limits/],
  ])('the hooks section with a flow that cannot take effect is refused: %j', (hooks, sentence) => {
    expect(find(hooks)).toEqual([expect.stringMatching(sentence)])
  })

  test.each([
    [{ agents: { defaults: { limits: ['x'] } } }, /agents\.defaults\.limits\[0\] is not a name in limits/],
    [
      { agents: { list: [{ id: 'a', limits: ['gpu', 'x'] }] } },
      /agents\.list\[0\]\.limits\[1\] is not a name in limits/,
    ],
  ])('the agents section with unknown limits is refused: %j', (config, sentence) => {
    expect(find({}, config)).toEqual([expect.stringMatching(sentence)])
  })

  test('the nearest valid forms of the refused flows are accepted', () => {
    const flow = {
      delay: '30s',
      maxDelay: '31s',
      expires: '31s',
      onNew: 'replace',
      perKey: 1,
      limits: ['gpu', 'openai'],
    }
    expect(find(toHooks(flow))).toEqual([])
    expect(find(toHooks({ onNew: 'replace', key: '{{path}}:{{n}}' }))).toEqual([])
    expect(find({ agent: { flow: { onNew: 'replace', key: '{{sessionKey}}' } } })).toEqual([])
  })
})
