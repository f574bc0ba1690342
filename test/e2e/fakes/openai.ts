// OpenAI's Responses API: https://platform.openai.com/docs/api-reference/responses
import { z } from 'zod'
import { apiKey, type Api, toEvent } from './provider.ts'

const Text = z.strictObject({ type: z.enum(['input_text', 'output_text']), text: z.string().min(1) })

/** Strict schemas require every property, and allow no other: https://platform.openai.com/docs/guides/structured-outputs */
export const StrictSchema = z
  .looseObject({
    type: z.literal('object'),
    properties: z.record(z.string(), z.unknown()),
    required: z.array(z.string()),
    additionalProperties: z.literal(false),
  })
  .refine(({ properties, required }) => Object.keys(properties).every((name) => required.includes(name)))

const Body = z.strictObject({
  model: z.string(),
  input: z.array(
    z.strictObject({
      role: z.enum(['developer', 'system', 'user', 'assistant']),
      content: z.union([z.string().min(1), z.array(Text)]),
    }),
  ),
  store: z.literal(false),
  max_output_tokens: z.int().positive().optional(),
  include: z.array(z.literal('reasoning.encrypted_content')).optional(),
  text: z
    .strictObject({
      format: z.strictObject({
        type: z.literal('json_schema'),
        name: z.string(),
        strict: z.literal(true),
        schema: StrictSchema,
      }),
    })
    .optional(),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        name: z.string(),
        description: z.string(),
        parameters: StrictSchema,
      }),
    )
    .optional(),
  tool_choice: z.literal('required').optional(),
  reasoning: z.strictObject({ effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']) }).optional(),
  stream: z.literal(true).optional(),
})

const usage = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 4 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
}
const head = { id: 'resp_1', created_at: 1_700_000_000, model: 'gpt-5.2-2025-12-11' }

const whole = { ...head, object: 'response', status: 'completed', error: null, incomplete_details: null, usage }
const toCall = (input: object) => ({
  id: 'fc_1',
  type: 'function_call',
  call_id: 'call_1',
  name: 'answer',
  arguments: JSON.stringify(input),
  status: 'completed',
})

export const openai: Api = {
  kind: 'openai',
  model: 'gpt-5.2',
  basePath: '/v1',
  toPath: () => '/v1/responses',
  keyHeader: ['authorization', `Bearer ${apiKey}`],
  body: Body,
  isStreamed: ({ body }) => Body.safeParse(body).data?.stream === true,
  findThinking: (body) => Body.parse(body).reasoning,
  toReplyBody: (text) => ({
    ...whole,
    output: [
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text, annotations: [] }],
      },
    ],
  }),
  toEvents: (pieces) => {
    const item = { id: 'msg_1', type: 'message', role: 'assistant', content: [] }
    return [
      { type: 'response.created', response: head },
      { type: 'response.output_item.added', output_index: 0, item },
      ...pieces.map((delta) => ({
        type: 'response.output_text.delta',
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        delta,
      })),
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { ...head, incomplete_details: null, usage } },
    ].map((event, index) => toEvent({ ...event, sequence_number: index }))
  },
  toCallBody: (input) => ({ ...whole, output: [toCall(input)] }),
  toCallEvents: (input) => {
    const item = toCall(input)
    return [
      { type: 'response.created', response: head },
      { type: 'response.output_item.added', output_index: 0, item: { ...item, arguments: '' } },
      {
        type: 'response.function_call_arguments.delta',
        item_id: item.id,
        output_index: 0,
        delta: item.arguments,
      },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { ...head, incomplete_details: null, usage } },
    ].map((event, index) => toEvent({ ...event, sequence_number: index }))
  },
  findForm: (body) => {
    const { text, tools } = Body.parse(body)
    if (text !== undefined) return { form: 'structured-output', schema: text.format.schema }
    return tools && { form: 'tool-call', schema: tools[0]?.parameters }
  },
  toErrorBody: (status) => ({
    error: {
      message: `Refused ${apiKey}`,
      type: status === 429 ? 'requests' : 'invalid_request_error',
      param: null,
      code: null,
    },
  }),
  overloaded: toEvent({
    type: 'error',
    sequence_number: 9,
    error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'Slow down', param: null },
  }),
  listPath: '/v1/models',
}
