// The documentation that editors show for the package's types, read from the service that editors use.
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

const built = join(import.meta.dirname, '../../dist/index.d.ts')
const authored = join(import.meta.dirname, 'author.ts')

let text = ''
let version = 0
const service = ts.createLanguageService({
  getScriptFileNames: () => [authored],
  getScriptVersion: (file) => (file === authored ? String(version) : '1'),
  getScriptSnapshot: (file) => {
    const found = file === authored ? text : ts.sys.readFile(file)
    return found === undefined ? undefined : ts.ScriptSnapshot.fromString(found)
  },
  getCurrentDirectory: () => import.meta.dirname,
  getCompilationSettings: () => ({
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    paths: { hookloom: [built] },
  }),
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  fileExists: (file) => file === authored || ts.sys.fileExists(file),
  readFile: ts.sys.readFile,
})

/** The hover documentation of each field of a type. */
function readHovers(type: string): Record<string, string> {
  text = `import type { ${type} } from 'hookloom'\ndeclare const value: ${type}\nvalue.`
  version += 1
  const entries = service.getCompletionsAtPosition(authored, text.length, undefined)?.entries ?? []
  return Object.fromEntries(
    entries.map(({ name }) => {
      const details = service.getCompletionEntryDetails(authored, text.length, name, {}, undefined, {}, undefined)
      return [name, ts.displayPartsToString(details?.documentation)]
    }),
  )
}

describe('the types of the built package', () => {
  test.each([
    ['TransformInput', 10],
    ['TransformContext', 3],
    ['TransformState', 2],
    ['StateOptions', 1],
    ['AgentResult', 15],
    ['WakeResult', 5],
    ['DeliverResult', 7],
    ['FlowResult', 12],
    ['FlowRateResult', 3],
    ['ResponseResult', 3],
    ['DedupeResult', 2],
    ['VerifyRequest', 4],
    ['VerifierContext', 3],
    ['VerifierDefinition', 7],
    ['SimpleChannelDefinition', 10],
    ['FullChannelDefinition', 6],
    ['RunnerDefinition', 7],
    ['OutboxDefinition', 6],
    ['SourceDefinition', 8],
    ['SourceHost', 11],
    ['SourceParts', 5],
    ['SourceItem', 3],
    ['SourceFile', 3],
    ['FileLimits', 2],
    ['PassFailure', 2],
    ['Outgoing', 7],
    ['PresetParts', 2],
    ['PresetSetup', 2],
    ['HookloomOptions', 15],
    ['Hookloom', 8],
  ] as const)('%s has %i fields, and an editor shows the meaning of each', (type, count) => {
    const hovers = readHovers(type)
    expect(Object.keys(hovers)).toHaveLength(count)
    expect(Object.keys(hovers).filter((name) => hovers[name] === '')).toEqual([])
  })

  test('an editor shows the comment of a field at that field', () => {
    expect(readHovers('TransformInput')).toMatchObject({
      headers: expect.stringContaining('by lower-case name'),
      receivedAt: expect.stringContaining('milliseconds since the epoch'),
    })
  })
})
