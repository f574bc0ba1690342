// The answers of the admin API about the payloads of hooks. Times are ISO 8601.
import { z } from 'zod'
import { readonlyList } from './answers.ts'

const Kinds = readonlyList(z.enum(['null', 'boolean', 'number', 'string', 'array', 'object']))

/** The facts that the gateway has learnt about the payloads of one event. */
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
  fields: readonlyList(
    z.object({
      path: z.string().describe('`[]`: all items. `<any>`: all values of a map.'),
      kinds: Kinds,
      count: z.number(),
      of: z
        .number()
        .describe('The number of objects one level above that were read: each of them could have had the field.'),
    }),
  ),
  changes: readonlyList(
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
  requests: z.number().describe('The number of requests: those that came in, fixtures and bundled requests.'),
  paths: readonlyList(
    z.object({
      path: z.string().describe('As a placeholder of a template has it, such as `commits[0].author.name`.'),
      kinds: Kinds,
      count: z.number().describe('How many of `requests` have it. Below a list: how many of its items.'),
    }),
  ).describe('In the order of the payloads, at most 5,000.'),
})
export type LearntPaths = z.infer<typeof LearntPaths>

/** Code of a file of the author. `line` and `endLine` begin at 1. */
const Places = readonlyList(
  z.object({ line: z.number(), endLine: z.number(), text: z.string().describe('Its beginning.') }),
)

/** The code of a module that its fixtures run, and the learnt payloads that its fixtures have. */
const ModuleCoverage = z.object({
  files: readonlyList(
    z.object({
      file: z.string().describe('Relative to the transforms directory.'),
      lines: z.number().describe('The lines with code.'),
      covered: z.number().describe('Those of them that fixtures run as a whole.'),
      unreached: Places.describe('Code that no fixture runs, and no kept request either.'),
      onlyKept: Places.describe('Code that only kept requests run.'),
    }),
  ),
  requests: z.object({
    total: z.number().describe('The newest kept requests of the module that were run, at most 200.'),
    covered: z.number().describe('Those of them that run only code that fixtures run too.'),
    uncovered: readonlyList(
      z.object({
        source: z.string().nullable(),
        event: z.string().nullable(),
        count: z.number(),
        example: z.string().describe('The id of the newest of them, of which a fixture can be made.'),
      }),
    ),
  }),
  shapes: readonlyList(
    z.object({
      hook: z.string(),
      source: z.string().nullable(),
      event: z.string().nullable(),
      requests: z.number(),
      fixtures: z.number().describe('The fixtures with this event.'),
      fields: z.number().describe('The fields of the payloads.'),
      covered: z.number().describe('Those of them that fixtures have with every kind of value.'),
      missing: readonlyList(z.object({ path: z.string(), kinds: Kinds })).describe(
        'The others, and the kinds: at most 50.',
      ),
    }),
  ).describe('The events that came in for the mappings of the module, the most frequent first.'),
})
export type ModuleCoverageFields = z.infer<typeof ModuleCoverage>

/** `coverage`: null if neither a fixture nor a kept request runs the module. `problem`: why the module does not load. */
export const CoverageFields = z.object({
  module: z.string(),
  coverage: ModuleCoverage.nullable(),
  problem: z.string().nullable(),
})
export type CoverageFields = z.infer<typeof CoverageFields>
