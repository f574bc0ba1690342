// The fixtures of a module: requests with their expected results, one JSON file each, in a folder next to the module.
import { takeStart } from '../../base/text.ts'
import { mkdir, readdir, realpath } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { applyEdits, modify } from 'jsonc-parser'
import { z } from 'zod'
import { tryParseSentJson } from '../../base/sent-json.ts'
import { describeFirstIssue } from '../../core/model/issue.ts'
import { parsedJson } from '../../core/model/values.ts'
import type { SentValue } from '../../base/json.ts'
import type { SenderResponse } from '../../core/model/response.ts'
import { Problem } from '../../core/model/problem.ts'
import { codeFolderMode, privateMode } from '../../base/files.ts'
import { createFileAtomic, reportUnwritable } from '../config/config-file.ts'
import { readInside } from '../../core/transforms/read.ts'
import { isInside, toModuleLabel, resolveRealPath } from '../../core/transforms/root.ts'

const maxFixtures = 200
/** The maximum size of a fixture, in bytes. */
export const maxFixtureBytes = 1_000_000

const fixtureDecisions = ['accept', 'skip', 'park', 'refusal'] as const

export const Fixture = z.strictObject({
  request: z.strictObject({
    /** The name of the hook. */
    path: z.string(),
    method: z.string().default('POST'),
    headers: z.record(z.string(), z.string()).default({}),
    query: z.record(z.string(), z.string()).default({}),
    payload: parsedJson,
  }),
  /** The values of `context.state` before the call, by key. */
  state: z.record(z.string(), parsedJson).optional(),
  /** The expected result. Without a decision, the fixture fails until `hookloom test -u` adds one. */
  expect: z
    .strictObject({
      decision: z.enum(fixtureDecisions).optional(),
      /** The expected actions, one for each action of the decision. Each lists only the fields that matter. */
      actions: z.array(z.record(z.string(), parsedJson)).optional(),
      /** The expected problem code of a parked or refused request. */
      code: z.string().optional(),
      /** The expected answer to the sender, if it is not the receipt. It lists only the fields that matter. */
      response: z.strictObject({ status: z.int(), contentType: z.string(), body: z.string() }).partial().optional(),
    })
    .default({}),
})
export type Fixture = z.infer<typeof Fixture>

/** `name` is the name of the file without its folder. `why`: the reason why a file is no fixture. Such a file counts as failed. */
export type FixtureFile = { readonly name: string; readonly file: string } & (
  | { readonly kind: 'fixture'; readonly fixture: Fixture }
  | { readonly kind: 'unusable'; readonly why: string }
)

/** The folder of the fixtures: `pr/opened.ts` → `pr/opened.fixtures`. */
export function toFixturesFolder(module: string): string {
  return `${module.slice(0, module.length - extname(module).length)}.fixtures`
}

/**
 * Reads the fixtures of a module, sorted by name; an empty list if the folder is missing. If there are more than `maxFixtures`, the last entry
 * is unusable and says so. `root` is a real path. Never rejects.
 */
export async function readFixtures(root: string, module: string): Promise<FixtureFile[]> {
  const folder = join(root, toFixturesFolder(module))
  const entries = await readdir(folder).catch(() => [])
  const names = entries.filter((name) => name.endsWith('.json') && !name.startsWith('.')).toSorted()
  const found = await Promise.all(
    names.slice(0, maxFixtures).map((name) => readFixture(root, join(folder, name), name)),
  )
  if (names.length <= maxFixtures) return found
  const why = `there are ${names.length} fixtures, and only the first ${maxFixtures} are read`
  return [...found, { kind: 'unusable', name: toFixturesFolder(module), file: folder, why }]
}

async function readFixture(root: string, file: string, name: string): Promise<FixtureFile> {
  const buildUnusable = (why: string): FixtureFile => ({ kind: 'unusable', name, file, why })
  try {
    const { contents } = await readInside(root, file, { largest: maxFixtureBytes })
    const parsed = parseFixture(Buffer.from(contents).toString('utf8'))
    return typeof parsed === 'string' ? buildUnusable(parsed) : { kind: 'fixture', name, file, fixture: parsed }
  } catch (error) {
    return buildUnusable(error instanceof Error ? error.message : 'it cannot be read')
  }
}

/** The fixture, or the reason why the text is no fixture. */
export function parseFixture(text: string): Fixture | string {
  try {
    JSON.parse(text)
  } catch (error) {
    return `it is not JSON: ${error instanceof Error ? takeStart(error.message, 200) : ''}`
  }
  const value = tryParseSentJson(text)
  const parsed = Fixture.safeParse(value)
  return parsed.success ? parsed.data : describeFirstIssue(parsed.error, value)
}

/**
 * Writes a new fixture of a module and returns the path of its file. `root` is a real path. Throws `conflict` if the file exists, if the
 * module already has the maximum number of fixtures, or if a symlink leads out of the root.
 */
export async function writeFixture(
  root: string,
  module: string,
  { name, text }: { name: string; text: string },
): Promise<string> {
  const folder = join(root, toFixturesFolder(module))
  const label = toModuleLabel(toFixturesFolder(module))
  const buildOutsideProblem = () =>
    new Problem('conflict', `${label} leads out of the transforms directory. No fixture was written.`)
  if (!isInside(root, await resolveRealPath(folder))) throw buildOutsideProblem()
  const made = await reportUnwritable(folder, async () => {
    await mkdir(folder, { recursive: true, mode: codeFolderMode })
    return realpath(folder)
  })
  if (!isInside(root, made)) throw buildOutsideProblem()
  const names = (await readdir(made)).filter((each) => each.endsWith('.json'))
  if (names.length >= maxFixtures) {
    throw new Problem(
      'conflict',
      `${label} has ${names.length} fixtures, and only ${maxFixtures} are read. Delete some.`,
    )
  }
  const file = join(folder, name)
  if (await createFileAtomic(join(made, name), text, privateMode)) return file
  throw new Problem('conflict', `${file} exists already. Nothing was overwritten: give it another name.`)
}

/** The result of a fixture's request, in the format of a fixture. */
export type Actual = {
  readonly decision: (typeof fixtureDecisions)[number]
  readonly actions: readonly { readonly [field: string]: SentValue }[]
  readonly code?: string | undefined
  readonly response?: SenderResponse | undefined
}

/**
 * The text of the fixture with `expect` set to the result of its request. The request stays the same, byte for byte. An expected action
 * keeps its expected fields in their order. A new action is written with all its fields.
 */
export function updateFixture(text: string, actual: Actual): string {
  const before = parseFixture(text)
  const expected = typeof before === 'string' ? [] : (before.expect.actions ?? [])
  const isExpected = typeof before === 'string' || before.expect.actions !== undefined || actual.actions.length > 0
  const actions = actual.actions.map((action, index) => pickExpected(action, expected[index]))
  const value = {
    decision: actual.decision,
    ...(isExpected ? { actions } : {}),
    ...(actual.code === undefined ? {} : { code: actual.code }),
    ...(actual.response === undefined ? {} : { response: actual.response }),
  }
  const formattingOptions = { insertSpaces: true, tabSize: 2, eol: '\n' }
  return applyEdits(text, modify(text, ['expect'], value, { formattingOptions }))
}

function pickExpected(action: Actual['actions'][number], expected: Actual['actions'][number] | undefined) {
  const names = expected === undefined ? Object.keys(action) : Object.keys(expected)
  return Object.fromEntries(names.flatMap((name) => (Object.hasOwn(action, name) ? [[name, action[name]]] : [])))
}
