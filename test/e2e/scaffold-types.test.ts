// What an editor shows in a transform that `hookloom new` wrote, read from the service that editors use, with the tsconfig of the directory.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ts from 'typescript'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { readBlocks } from '../pages.ts'
import { runCommand } from './command.ts'

// a compiler starts here
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let file = ''
let scaffolded = ''
let check: (text: string) => string[]

beforeAll(async () => {
  const dir = join(mkdtempSync(join(tmpdir(), 'scaffold-')), 'config')
  await runCommand(['init'], { dir })
  const request = join(dir, 'order.json')
  writeFileSync(request, JSON.stringify({ id: 7, customer: { name: 'Ada', email: 'ada@example.com' } }))
  await runCommand(['new', 'orders', '--from', request], { dir })
  file = join(dir, 'hooks', 'transforms', 'orders.ts')
  scaffolded = readFileSync(file, 'utf8')
  const { config } = ts.readConfigFile(join(dir, 'hooks', 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, join(dir, 'hooks'))
  check = createChecker(options)
})

/** Returns the function that gives the errors in a text of the module. */
function createChecker(options: ts.CompilerOptions): (text: string) => string[] {
  let text = ''
  let version = 0
  const service = ts.createLanguageService({
    getScriptFileNames: () => [file],
    getScriptVersion: (name) => (name === file ? String(version) : '1'),
    getScriptSnapshot: (name) => {
      const found = name === file ? text : ts.sys.readFile(name)
      return found === undefined ? undefined : ts.ScriptSnapshot.fromString(found)
    },
    getCurrentDirectory: () => join(file, '..'),
    getCompilationSettings: () => options,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  })
  return (next) => {
    text = next
    version += 1
    return [...service.getSyntacticDiagnostics(file), ...service.getSemanticDiagnostics(file)].map(({ messageText }) =>
      ts.flattenDiagnosticMessageText(messageText, '\n'),
    )
  }
}

/** The scaffold with another result. */
const withResult = (result: string) => {
  const changed = scaffolded.replace(/return \{ message.*\}/, `return ${result}`)
  expect(changed).not.toBe(scaffolded)
  return changed
}

describe('a transform that hookloom new wrote', () => {
  test('has no error in an editor', () => {
    expect(check(scaffolded)).toEqual([])
  })

  test.each([
    ['a result with another message', "{ message: 'x' }"],
    ['a wake', "{ kind: 'wake', text: 'x' }"],
    ['several actions', "[{ message: 'x' }, { message: 'y' }]"],
    ['null', 'null'],
  ])('takes %s', (_, result) => {
    expect(check(withResult(result))).toEqual([])
  })

  test.each([
    ['a misspelt field', "{ mesage: 'x' }"],
    ['a misspelt field beside the message', "{ message: 'x', sesionKey: 'a' }"],
    ['a number as message', '{ message: 5 }'],
    ['a number as message, with a dedupe key', "{ message: 5, dedupe: { key: 'a' } }"],
    ['the text of a wake in an agent run', "{ message: 'x', text: 'y' }"],
    ['the session of an agent run in a wake', "{ kind: 'wake', text: 'x', sessionKey: 'a' }"],
    ['a word that a field does not know', "{ message: 'x', wakeMode: 'later' }"],
  ])('has an error for %s', (_, result) => {
    expect(check(withResult(result))).not.toEqual([])
  })

  test('has an error for a field that the payload does not have', () => {
    expect(check(withResult('{ message: payload.customer.nmae }')).join('\n')).toMatch(/nmae/)
  })
})

const plugins = readBlocks('src/plugins/README.md').filter(
  ({ language, text }) => language === 'ts' && /define/.test(text),
)

test('the page of the plugins has one of each kind', () => {
  expect(plugins.map(({ section }) => section)).toEqual(['A channel', 'A sender', 'An outbox', 'A runner', 'A source'])
})

test.each(plugins)('$section of the page of the plugins has no error in an editor', ({ text }) => {
  expect(check(text)).toEqual([])
})
