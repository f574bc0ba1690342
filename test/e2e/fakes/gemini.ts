// Google's Gemini API: https://ai.google.dev/api/generate-content
import { z } from 'zod'
import { apiKey, type Api, toEvent } from './provider.ts'

const Parts = z.array(z.strictObject({ text: z.string().min(1) }))

// a subset of OpenAPI: https://ai.google.dev/api/caching#Schema
const Schema = z.strictObject({
  type: z.literal('object'),
  properties: z.record(
    z.string(),
    z.strictObject({
      type: z.literal('string'),
      description: z.string().optional(),
      enum: z.array(z.string()).optional(),
    }),
  ),
  required: z.array(z.string()),
})

const Body = z.strictObject({
  contents: z.array(z.strictObject({ role: z.enum(['user', 'model']), parts: Parts })),
  systemInstruction: z.strictObject({ parts: Parts }).optional(),
  generationConfig: z.strictObject({
    thinkingConfig: z
      .union([
        z.strictObject({ thinkingLevel: z.enum(['minimal', 'low', 'medium', 'high']) }),
        z.strictObject({ thinkingBudget: z.int().nonnegative() }),
      ])
      .optional(),
    responseMimeType: z.literal('application/json').optional(),
    responseSchema: Schema.optional(),
  }),
  tools: z
    .array(
      z.strictObject({
        functionDeclarations: z.array(
          z.strictObject({ name: z.string(), description: z.string(), parameters: Schema }),
        ),
      }),
    )
    .optional(),
  toolConfig: z.strictObject({ functionCallingConfig: z.strictObject({ mode: z.literal('ANY') }) }).optional(),
})

const model = 'gemini-3-flash-preview'
const usageMetadata = {
  promptTokenCount: 11,
  cachedContentTokenCount: 4,
  candidatesTokenCount: 5,
  thoughtsTokenCount: 2,
  totalTokenCount: 18,
}

const toCall = (args: object) => ({ role: 'model', parts: [{ functionCall: { name: 'answer', args } }] })

export const google: Api = {
  kind: 'google',
  model,
  basePath: '/v1beta',
  toPath: (streamed) => `/v1beta/models/${model}:${streamed ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  keyHeader: ['x-goog-api-key', apiKey],
  body: Body,
  isStreamed: ({ path }) => path.includes(':stream'),
  findThinking: (body) => Body.parse(body).generationConfig.thinkingConfig,
  toReplyBody: (text) => ({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata,
    modelVersion: model,
  }),
  toEvents: (pieces) =>
    [
      ...pieces.map((text) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] })),
      { candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP', index: 0 }] },
    ].map((event) => toEvent({ ...event, usageMetadata, modelVersion: model })),
  toCallBody: (input) => ({
    candidates: [{ content: toCall(input), finishReason: 'STOP', index: 0 }],
    usageMetadata,
    modelVersion: model,
  }),
  toCallEvents: (input) => [
    toEvent({
      candidates: [{ content: toCall(input), finishReason: 'STOP', index: 0 }],
      usageMetadata,
      modelVersion: model,
    }),
  ],
  findForm: (body) => {
    const { generationConfig, tools } = Body.parse(body)
    if (generationConfig.responseSchema !== undefined)
      return { form: 'structured-output', schema: generationConfig.responseSchema }
    return tools && { form: 'tool-call', schema: tools[0]?.functionDeclarations[0]?.parameters }
  },
  toErrorBody: (status) => ({
    error: {
      code: status,
      message: `Refused ${apiKey}`,
      status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'INVALID_ARGUMENT',
    },
  }),
  overloaded: toEvent({ error: { code: 429, message: 'Slow down', status: 'RESOURCE_EXHAUSTED' } }),
  listPath: '/v1beta/models',
}
