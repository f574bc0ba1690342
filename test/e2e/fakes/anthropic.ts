// Anthropic's Messages API: https://platform.claude.com/docs/en/api/messages
import { z } from 'zod'
import { StrictSchema } from './openai.ts'
import { apiKey, type Api } from './provider.ts'

const Text = z.strictObject({ type: z.literal('text'), text: z.string().min(1) })

const Body = z.strictObject({
  model: z.string(),
  max_tokens: z.int().positive(),
  system: z.array(Text).optional(),
  messages: z.array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.array(Text) })),
  thinking: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.enum(['adaptive', 'disabled', 'between_tools']) }),
      z.strictObject({ type: z.literal('enabled'), budget_tokens: z.int().min(1_024) }),
    ])
    .optional(),
  output_config: z
    .strictObject({
      effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
      format: z.strictObject({ type: z.literal('json_schema'), schema: StrictSchema }).optional(),
    })
    .optional(),
  tools: z
    .array(
      z.strictObject({
        name: z.string(),
        description: z.string(),
        input_schema: StrictSchema,
        eager_input_streaming: z.literal(true).optional(),
      }),
    )
    .optional(),
  tool_choice: z.strictObject({ type: z.literal('any') }).optional(),
  stream: z.literal(true).optional(),
})

const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-opus-4-7-20260416', content: [] }
const asked = { input_tokens: 7, cache_read_input_tokens: 4, cache_creation_input_tokens: 0 }

const tool = { type: 'tool_use', id: 'toolu_1', name: 'answer' }

export const anthropic: Api = {
  kind: 'anthropic',
  model: 'claude-opus-4-7',
  basePath: '/v1',
  toPath: () => '/v1/messages',
  keyHeader: ['x-api-key', apiKey],
  body: Body,
  isStreamed: ({ body }) => Body.safeParse(body).data?.stream === true,
  findThinking: (body) => {
    const { thinking, output_config } = Body.parse(body)
    return thinking && { ...thinking, ...output_config }
  },
  toReplyBody: (text) => ({
    ...head,
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { ...asked, output_tokens: 7 },
  }),
  toEvents: (pieces) =>
    [
      { type: 'message_start', message: { ...head, stop_reason: null, usage: { ...asked, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ...pieces.map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 7 } },
      { type: 'message_stop' },
    ].map(toNamedEvent),
  toCallBody: (input) => ({
    ...head,
    content: [{ ...tool, input }],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: { ...asked, output_tokens: 7 },
  }),
  toCallEvents: (input) =>
    [
      { type: 'message_start', message: { ...head, stop_reason: null, usage: { ...asked, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { ...tool, input: {} } },
      {
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json: JSON.stringify(input) },
      },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 7 } },
      { type: 'message_stop' },
    ].map(toNamedEvent),
  findForm: (body) => {
    const { output_config: output, tools } = Body.parse(body)
    if (output?.format !== undefined) return { form: 'structured-output', schema: output.format.schema }
    return tools && { form: 'tool-call', schema: tools[0]?.input_schema }
  },
  toErrorBody: (status) => ({
    type: 'error',
    error: { type: status === 429 ? 'rate_limit_error' : 'invalid_request_error', message: `Refused ${apiKey}` },
  }),
  overloaded: toNamedEvent({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  listPath: '/v1/models',
}

function toNamedEvent(data: { readonly type: string; readonly [key: string]: unknown }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
}
