// The answers of the admin API about the payloads of hooks. Times are ISO 8601.
import { z } from 'zod'
import { list } from './answers.ts'

const Kinds = list(z.enum(['null', 'boolean', 'number', 'string', 'array', 'object']))

/** What the gateway has learnt about the payloads of one event. */
export const ShapeFields = z.object({
  hook: z.string().describe('`*`: the mappings without a path.'),
  source: z.string().nullable(),
  event: z.string().nullable(),
  requests: z.number().describe('The requests from which it was learnt. Under load, some are left out.'),
  firstAt: z.string(),
  lastAt: z.string(),
  example: z
    .string()
    .nullable()
    .describe('The id of the newest kept request of the event, of which a fixture can be made. Null: none is kept.'),
  fields: list(
    z.object({
      path: z.string().describe('`[]`: all items. `<any>`: all values of a map.'),
      kinds: Kinds,
      count: z.number(),
      of: z.number().describe('How many could have had it: the objects that were read one level above.'),
    }),
  ),
  changes: list(
    z.object({
      at: z.string(),
      what: z.enum(['new-field', 'new-kind', 'gone']),
      path: z.string(),
      text: z.string(),
      example: z.string().nullable().describe('The id of the newest kept request that shows the change.'),
    }),
  ).describe('The oldest first.'),
})
export type ShapeFields = z.infer<typeof ShapeFields>

/** The paths that templates of a hook can read. */
export const LearntPaths = z.object({
  requests: z.number().describe('Those that came in, with fixtures and bundled requests.'),
  paths: list(
    z.object({
      path: z.string().describe('As a placeholder of a template has it, such as `commits[0].author.name`.'),
      kinds: Kinds,
      count: z.number().describe('How many of `requests` have it. Below a list: how many of its items.'),
    }),
  ).describe('In the order of the payloads, at most 5,000.'),
})
export type LearntPaths = z.infer<typeof LearntPaths>
