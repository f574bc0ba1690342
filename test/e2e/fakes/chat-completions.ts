// OpenAI's Chat Completions API as Ollama, vLLM and others implement it: https://platform.openai.com/docs/api-reference/chat
import { z } from 'zod'
import { StrictSchema } from './openai.ts'
import { apiKey, type Api, toEvent } from './provider.ts'

const Fields = z.strictObject({
  model: z.string(),
  messages: z.array(z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: z.string().min(1) })),
  reasoning_effort: z.enum(['low', 'medium', 'high']).optional(),
  // an extension of vLLM
  chat_template_kwargs: z.record(z.string(), z.boolean()).optional(),
  response_format: z
    .strictObject({
      type: z.literal('json_schema'),
      json_schema: z.strictObject({ name: z.string(), strict: z.literal(true), schema: StrictSchema }),
    })
    .optional(),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        function: z.strictObject({ name: z.string(), description: z.string(), parameters: StrictSchema }),
      }),
    )
    .optional(),
  tool_choice: z.literal('required').optional(),
  stream: z.literal(true).optional(),
  stream_options: z.strictObject({ include_usage: z.literal(true) }).optional(),
})

// a stream contains its usage only if the client asks for it
const Body = Fields.refine(
  ({ stream, stream_options }) => (stream === undefined) === (stream_options === undefined),
  'a stream without its usage',
)

const head = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'hf.co/qwen/qwen3:8b' }
const usage = {
  prompt_tokens: 11,
  completion_tokens: 7,
  total_tokens: 18,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 2 },
}

const toCall = (input: object) => ({
  id: 'call_1',
  type: 'function',
  function: { name: 'answer', arguments: JSON.stringify(input) },
})

export const chatCompletions: Api = {
  kind: 'openai-compatible',
  model: 'hf.co/qwen/qwen3:8b',
  basePath: '/v1',
  toPath: () => '/v1/chat/completions',
  keyHeader: ['authorization', `Bearer ${apiKey}`],
  body: Body,
  isStreamed: ({ body }) => Body.safeParse(body).data?.stream === true,
  findThinking: (body) => Body.parse(body).reasoning_effort,
  toReplyBody: (text) => ({
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage,
  }),
  toEvents: (pieces) => [
    ...[
      { choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] },
      ...pieces.map((content) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })),
      { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { choices: [], usage },
    ].map((event) => toEvent({ ...head, object: 'chat.completion.chunk', ...event })),
    'data: [DONE]\n\n',
  ],
  toCallBody: (input) => ({
    ...head,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, tool_calls: [toCall(input)] },
        finish_reason: 'tool_calls',
      },
    ],
    usage,
  }),
  toCallEvents: (input) => [
    ...[
      {
        choices: [
          { index: 0, delta: { role: 'assistant', tool_calls: [{ index: 0, ...toCall(input) }] }, finish_reason: null },
        ],
      },
      { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
      { choices: [], usage },
    ].map((event) => toEvent({ ...head, object: 'chat.completion.chunk', ...event })),
    'data: [DONE]\n\n',
  ],
  findForm: (body) => {
    const { response_format: format, tools } = Body.parse(body)
    if (format !== undefined) return { form: 'structured-output', schema: format.json_schema.schema }
    return tools && { form: 'tool-call', schema: tools[0]?.function.parameters }
  },
  toErrorBody: (status) => ({
    error: { message: `Refused ${apiKey}`, type: status === 429 ? 'rate_limit_error' : 'api_error' },
  }),
  overloaded: toEvent({ error: { message: 'Overloaded', type: 'overloaded_error', code: 529 } }),
  listPath: '/v1/models',
}
