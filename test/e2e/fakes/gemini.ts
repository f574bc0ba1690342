// Google's Gemini API: https://ai.google.dev/api/generate-content
import { z } from 'zod'
import { apiKey, type Api, toEvent } from './provider.ts'

const Parts = z.array(z.strictObject({ text: z.string().min(1) }))

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
  }),
})

const model = 'gemini-3-flash-preview'
const usageMetadata = {
  promptTokenCount: 11,
  cachedContentTokenCount: 4,
  candidatesTokenCount: 5,
  thoughtsTokenCount: 2,
  totalTokenCount: 18,
}

export const google: Api = {
  kind: 'google',
  model,
  basePath: '/v1beta',
  toPath: (streamed) => `/v1beta/models/${model}:${streamed ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  keyHeader: ['x-goog-api-key', apiKey],
  body: Body,
  isStreamed: ({ path }) => path.includes(':stream'),
  thinkingOf: (body) => Body.parse(body).generationConfig.thinkingConfig,
  toWhole: (text) => ({
    candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 }],
    usageMetadata,
    modelVersion: model,
  }),
  toEvents: (pieces) =>
    [
      ...pieces.map((text) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] })),
      { candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP', index: 0 }] },
    ].map((event) => toEvent({ ...event, usageMetadata, modelVersion: model })),
  toRefusal: (status) => ({
    error: {
      code: status,
      message: `Refused ${apiKey}`,
      status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'INVALID_ARGUMENT',
    },
  }),
  overloaded: toEvent({ error: { code: 429, message: 'Slow down', status: 'RESOURCE_EXHAUSTED' } }),
  listPath: '/v1beta/models',
}
