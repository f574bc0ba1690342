import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../../src/base/json.ts'
import { explain } from '../../../../src/gateway/replay/explain.ts'
import type { Generation } from '../../../../src/gateway/generation/generation.ts'
import { decideOn, toGeneration, toTestDelivery, toTestId } from '../../core/mapping/decide.ts'

function explainOn(generation: Generation, path: string, payload: JsonValue) {
  return explain(generation, toTestDelivery(path, payload), toTestId)
}

describe('explanations of decisions', () => {
  test('an explanation has the same decision as the gateway', async () => {
    const generation = toGeneration([{ match: { path: 'x' }, messageTemplate: '{{a}}', sessionKey: 'hook:{{a}}' }])
    const delivery = toTestDelivery('x', { a: 'b' })
    const { decision } = await explain(generation, delivery, toTestId)
    expect(decision).toEqual(await decideOn(generation, delivery))
  })

  test('the origin of a field is a template, a literal or a default', async () => {
    const mapping = { match: { path: 'x' }, name: 'Fixed', messageTemplate: 'On {{a}}', to: '42', timeoutSeconds: 5 }
    const { origins } = await explainOn(toGeneration([mapping]), 'x', { a: 'b' })
    expect(origins).toEqual([
      {
        message: 'template messageTemplate',
        name: 'literal name',
        to: 'literal to',
        timeoutSeconds: 'literal timeoutSeconds',
        agentId: 'default',
        sessionKey: 'default',
        wakeMode: 'default',
        deliver: 'default',
        channel: 'default',
        allowUnsafeExternalContent: 'default',
      },
    ])
  })

  test('the origin of a field is the module if the module set it, and otherwise the mapping', async () => {
    const generation = toGeneration(
      [{ match: { path: 'x' }, name: 'Kept', messageTemplate: 'Replaced', transform: { module: 'a.ts' } }],
      { transforms: { 'a.ts': () => ({ message: 'Mine', name: undefined }) }, hooks: { defaultSessionKey: 'hook:in' } },
    )
    const { origins } = await explainOn(generation, 'x', {})
    expect(origins).toMatchObject([
      { message: 'transform a.ts', name: 'literal name', sessionKey: 'config hooks.defaultSessionKey' },
    ])
  })

  test('each result of a transform that returns several has its own origins of fields', async () => {
    const generation = toGeneration([{ match: { path: 'x' }, name: 'Kept', transform: { module: 'a.ts' } }], {
      transforms: {
        'a.ts': () => [{ message: 'one' }, { message: 'two', name: 'Two' }, { kind: 'wake', text: 'three' }],
      },
    })
    const { origins } = await explainOn(generation, 'x', {})
    expect(origins.map(({ name, text, mode }) => ({ name, text, mode }))).toEqual([
      { name: 'literal name', text: undefined, mode: undefined },
      { name: 'transform a.ts', text: undefined, mode: undefined },
      { name: undefined, text: 'transform a.ts', mode: 'default' },
    ])
  })

  test('the action for each recipient of a message has the origins of the result that named the recipient or kept the list', async () => {
    const to = ['1', '2'].map((user) => ({ channel: 'telegram' as const, to: user }))
    const mapping = {
      match: { path: 'x' },
      action: 'deliver' as const,
      name: 'Kept',
      to,
      transform: { module: 'a.ts' },
    }
    const transforms = {
      'a.ts': () => [
        { message: 'one', name: 'Named' },
        { message: 'two', channel: 'telegram', to: '3' },
      ],
    }
    const { origins } = await explainOn(toGeneration([mapping], { transforms }), 'x', {})
    expect(origins.map(({ name }) => name)).toEqual(['transform a.ts', 'transform a.ts', 'literal name'])
  })

  test('each item of a forEach has its own origins of fields, even after an item that the transform skips', async () => {
    const generation = toGeneration(
      [{ match: { path: 'x' }, forEach: 'items', name: 'Kept', transform: { module: 'a.ts' } }],
      {
        transforms: {
          'a.ts': ({ payload }) => {
            const text = JSON.stringify(payload)
            if (text.includes('skip')) return null
            return text.includes('named') ? { message: 'm', name: 'Named' } : { message: 'm' }
          },
        },
      },
    )
    const { origins } = await explainOn(generation, 'x', { items: ['skip', 'plain', 'named'] })
    expect(origins.map(({ name }) => name)).toEqual(['literal name', 'transform a.ts'])
  })

  test('the origin of a field of the built-in hooks is the request, hooks.agent or a default', async () => {
    const generation = toGeneration([{ messageTemplate: 'anything' }])
    const agent = await explainOn(generation, 'agent', { message: 'hi', deliver: false })
    expect(agent.origins).toMatchObject([{ message: 'request', deliver: 'request', channel: 'default' }])
    expect(agent.trace).toEqual([])
    const trusting = toGeneration([], { hooks: { agent: { allowUnsafeExternalContent: true } } })
    const trusted = await explainOn(trusting, 'agent', { message: 'hi', allowUnsafeExternalContent: false })
    expect(trusted.origins[0]?.['allowUnsafeExternalContent']).toBe('config hooks.agent.allowUnsafeExternalContent')
    const wake = await explainOn(generation, 'wake', { text: 'hi' })
    expect(wake.origins).toEqual([{ text: 'request', mode: 'default', allowUnsafeExternalContent: 'default' }])
  })

  test('every mapping has a reason in an explanation, even if no mapping takes the delivery', async () => {
    const generation = toGeneration([{ match: { path: 'x', source: 'me' } }, { match: { path: 'y' } }])
    const { decision, trace, origins } = await explainOn(generation, 'x', {})
    expect(decision.kind).toBe('skip')
    expect(trace.map(({ matched, why }) => ({ matched, isTold: why !== '' }))).toEqual([
      { matched: false, isTold: true },
      { matched: false, isTold: true },
    ])
    expect(origins).toEqual([])
  })
})
