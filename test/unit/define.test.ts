import { describe, expectTypeOf, test } from 'vitest'
import type { z } from 'zod'
import { type AgentResult, defineTransform, type FlowResult, type WakeResult } from '../../src/define.ts'
import { ReturnedFlow } from '../../src/core/model/flow.ts'
import { AgentResult as AgentSchema, WakeResult as WakeSchema } from '../../src/core/model/transform.ts'

describe('the types of a result', () => {
  test('the types of a result have the fields of the schemas that check it', () => {
    expectTypeOf<keyof AgentResult>().toEqualTypeOf<keyof z.input<typeof AgentSchema>>()
    expectTypeOf<keyof WakeResult>().toEqualTypeOf<keyof z.input<typeof WakeSchema>>()
    expectTypeOf<keyof FlowResult>().toEqualTypeOf<keyof z.input<typeof ReturnedFlow>>()
    expectTypeOf<FlowResult>().toExtend<z.input<typeof ReturnedFlow>>()
    expectTypeOf<z.input<typeof ReturnedFlow>>().toExtend<FlowResult>()
    expectTypeOf<z.output<typeof AgentSchema>>().toExtend<AgentResult>()
    expectTypeOf<z.output<typeof WakeSchema>>().toExtend<WakeResult>()
  })

  test('the types of a result accept only the valid words of channel, thinking and wakeMode', () => {
    defineTransform(() => ({ message: 'x', channel: 'slack', thinking: 'high', wakeMode: 'now' }))
    expectTypeOf(defineTransform(() => ({ message: 'x', channel: 'own:ntfy' }))).toBeFunction()
    // @ts-expect-error -- no channel has this name
    defineTransform(() => ({ message: 'x', channel: 'slak' }))
    // @ts-expect-error -- no such level
    defineTransform(() => ({ message: 'x', thinking: 'hgh' }))
    // @ts-expect-error -- no such mode
    defineTransform(() => ({ message: 'x', wakeMode: 'later' }))
  })
})
