// OpenAI's Chat Completions API as Ollama, vLLM and others implement it: https://platform.openai.com/docs/api-reference/chat
import { z } from 'zod'
import { apiKey, type Api, toEvent } from './provider.ts'

const Fields = z.strictObject({
  model: z.string(),
  messages: z.array(z.strictObject({ role: z.enum(['system', 'user', 'assistant']), content: z.string().min(1) })),
  reasoning_effort: z.enum(['low', 'medium', 'high']).optional(),
  // an extension of vLLM
  chat_template_kwargs: z.record(z.string(), z.boolean()).optional(),
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

export const chatCompletions: Api = {
  kind: 'openai-compatible',
  model: 'hf.co/qwen/qwen3:8b',
  basePath: '/v1',
  toPath: () => '/v1/chat/completions',
  keyHeader: ['authorization', `Bearer ${apiKey}`],
  body: Body,
  isStreamed: ({ body }) => Body.safeParse(body).data?.stream === true,
  thinkingOf: (body) => Body.parse(body).reasoning_effort,
  toWhole: (text) => ({
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
  toRefusal: (status) => ({
    error: { message: `Refused ${apiKey}`, type: status === 429 ? 'rate_limit_error' : 'api_error' },
  }),
  overloaded: toEvent({ error: { message: 'Overloaded', type: 'overloaded_error', code: 529 } }),
  listPath: '/v1/models',
}
