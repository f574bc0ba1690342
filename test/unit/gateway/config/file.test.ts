import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadConfig, parseConfig } from '../../../../src/gateway/config/config.ts'
import { privateMode, writeStateFile } from '../../../../src/base/files.ts'
import {
  editConfig,
  removeEmptyList,
  reportUnwritable,
  writeFileAtomic,
} from '../../../../src/gateway/config/config-file.ts'
import { createConfigFolder } from '../../../../src/cli/scaffold/folder.ts'
import { renderEnv, renderNewConfig } from '../../../../src/cli/scaffold/new-config.ts'
import { checkRisks } from '../../../../src/gateway/config/warnings.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'hookloom-config-file-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

describe('a new configuration', () => {
  const tokens = { token: 'h'.repeat(43), gatewayToken: 'g'.repeat(43) }

  test('the new configuration is valid, and doctor has no warning about it', async () => {
    const files = [join(dir, 'hookloom.jsonc'), join(dir, '.env')] as const
    await writeFileAtomic(files[0], renderNewConfig(), privateMode)
    await writeFileAtomic(files[1], renderEnv(tokens), privateMode)
    const { config } = loadConfig({ dir, env: {} })
    expect(config.hooks).toMatchObject({
      enabled: true,
      token: tokens.token,
      defaultSessionKey: 'hook:inbox',
      allowRequestSessionKey: false,
      allowedSessionKeyPrefixes: ['hook:'],
      presets: [],
      mappings: [
        { match: { path: 'deploy' }, messageTemplate: expect.stringContaining('{{service}}') },
        { match: { path: 'github' }, transform: { module: 'github-pull-request.ts' } },
      ],
    })
    expect(config.gateway.token).toBe(tokens.gatewayToken)
    expect(config.server.host).toBe('127.0.0.1')
    expect(config.channels.default?.channel).toBe('console')
    const facts = { files: files.map((file) => ({ file, mode: statSync(file).mode & 0o777 })) }
    expect(checkRisks(config, facts).filter(({ ok }) => !ok)).toEqual([])
  })

  test('the new configuration reads its tokens from the environment, and does not load without them', () => {
    expect(parseConfig(renderNewConfig(), {}).problems).toEqual([
      expect.stringContaining('gateway.token needs HOOKLOOM_GATEWAY_TOKEN'),
      expect.stringContaining('hooks.token needs HOOKLOOM_TOKEN'),
    ])
  })

  test('a folder that cannot be written to is reported as config-invalid', async () => {
    writeFileSync(join(dir, 'file'), '')
    const folder = join(dir, 'file', 'config')
    await expect(createConfigFolder(folder)).rejects.toMatchObject({
      code: 'config-invalid',
      message: expect.stringContaining(`${folder} cannot be written: a part of its path is a file (ENOTDIR).`),
    })
  })

  test.each([
    ['EACCES', 'permission denied', 'Change its owner or its mode, or choose another folder with --config-dir.'],
    ['ENOSPC', 'the disk is full', 'Free some space, or choose another folder with --config-dir.'],
    ['EROFS', 'the file system is read-only', 'Choose another folder with --config-dir.'],
  ])('the error of a write that fails with %s has the reason and a remedy', async (code, why, next) => {
    const write = () => Promise.reject(Object.assign(new Error('no'), { code }))
    await expect(reportUnwritable('/x', write)).rejects.toMatchObject({
      message: `/x cannot be written: ${why} (${code}). ${next}`,
    })
  })

  test('the new configuration names its schema if one is given', () => {
    expect(renderNewConfig()).not.toContain('$schema')
    expect(renderNewConfig({ schema: './a.json' })).toContain('\n  "$schema": "./a.json",\n')
  })
})

describe('editConfig', () => {
  const text = `// top
{
    // the edge
    "server": { "port": 1 }, // behind
    "hooks": {
        "presets": [
            "one", // first
        ],
    },
}
`
  const comments = ['// top', '// the edge', '// behind', '// first']

  test('editConfig changes only the value at the path', () => {
    expect(editConfig(text, ['server', 'port'], 2)).toBe(text.replace('"port": 1', '"port": 2'))
  })

  test('editConfig adds keys, parents and array entries, and keeps every comment', () => {
    const added = editConfig(text, ['hooks', 'gmail', 'maxBytes'], 9)
    const appended = editConfig(added, ['hooks', 'presets', -1], { name: 'two' })
    for (const comment of comments) expect(appended).toContain(comment)
    expect(parseConfig(appended, {}).config?.hooks).toMatchObject({
      gmail: { maxBytes: 9 },
      presets: ['one', { name: 'two' }],
    })
  })

  test('editConfig removes the key if the new value is undefined', () => {
    expect(editConfig('{ "store": {}, "server": {} }', ['store'], undefined)).not.toContain('store')
  })

  test('editConfig does not edit text that does not parse', () => {
    expect(() => editConfig('{ "server": { "port": 1 }', ['server', 'port'], 2)).toThrow('does not parse')
    expect(() => editConfig('{ "a": 1, "a": 2 }', ['a'], 3)).toThrow('does not parse')
  })

  test('editConfig keeps the byte order mark and the line breaks', () => {
    const edited = editConfig('\uFEFF{\r\n  "store": {}\r\n}\r\n', ['server', 'port'], 2)
    expect(edited.startsWith('\uFEFF{\r\n')).toBe(true)
    expect(edited.replaceAll('\r\n', '')).not.toContain('\n')
  })
})

describe('writeFileAtomic', () => {
  test('writeFileAtomic writes a whole file with the exact mode, and leaves no temporary file', async () => {
    const file = join(dir, '.env')
    writeFileSync(file, 'old and longer than the new text')
    chmodSync(file, 0o644)
    await writeFileAtomic(file, 'new', privateMode)
    expect(readFileSync(file, 'utf8')).toBe('new')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await writeFileAtomic(file, 'public', 0o644)
    expect(statSync(file).mode & 0o777).toBe(0o644)
    expect(readdirSync(dir)).toEqual(['.env'])
  })

  test('a reader with the old file open still reads the old text', async () => {
    const file = join(dir, 'a')
    writeFileSync(file, 'old')
    const open = openSync(file, 'r')
    await writeFileAtomic(file, 'new', privateMode)
    expect([readFileSync(open, 'utf8'), readFileSync(file, 'utf8')]).toEqual(['old', 'new'])
    closeSync(open)
  })

  test('a write through a symlink replaces the target and keeps the symlink', async () => {
    writeFileSync(join(dir, 'real'), 'old')
    symlinkSync('real', join(dir, 'link'))
    await writeFileAtomic(join(dir, 'link'), 'new', privateMode)
    expect(readFileSync(join(dir, 'real'), 'utf8')).toBe('new')
    expect(readdirSync(dir).toSorted()).toEqual(['link', 'real'])
  })

  test('writeStateFile replaces a symlink, and creates its folder', async () => {
    const folder = join(dir, 'state')
    await writeStateFile(join(folder, 'a'), 'first')
    expect([statSync(folder).mode & 0o777, statSync(join(folder, 'a')).mode & 0o777]).toEqual([0o700, 0o600])
    writeFileSync(join(dir, 'real'), 'old')
    symlinkSync(join(dir, 'real'), join(folder, 'link'))
    await writeStateFile(join(folder, 'link'), 'new')
    expect([readFileSync(join(dir, 'real'), 'utf8'), readFileSync(join(folder, 'link'), 'utf8')]).toEqual([
      'old',
      'new',
    ])
    expect(readdirSync(folder).toSorted()).toEqual(['a', 'link'])
  })

  test('a failed write leaves no temporary file', async () => {
    await expect(writeFileAtomic(join(dir, 'missing', 'a'), 'x', privateMode)).rejects.toThrow('ENOENT')
    // a folder cannot be replaced by a file: the rename fails after the draft is complete
    await expect(writeFileAtomic(dir, 'x', privateMode)).rejects.toThrow('rename')
    expect(readdirSync(dir)).toEqual([])
  })
})

describe('an empty list that is removed', () => {
  test.each([
    ['the last key', '{\n  "a": 1, // one\n  // two\n  "list": []\n}\n', '{\n  "a": 1 // one\n  // two\n}\n'],
    ['the last key, with a comma', '{\r\n  "a": 1,\r\n  "list": [],\r\n}', '{\r\n  "a": 1,\r\n}'],
    ['the first key', '{\n  "list": [\n  ], // one\n  "a": 1\n}', '{\n // one\n  "a": 1\n}'],
    ['a comma after a comment', '{ "list": [] /* one */ , "a": 1 }', '{ /* one */  "a": 1 }'],
    ['the only key, after a byte order mark', '\uFEFF{"list":[]}', '\uFEFF{}'],
  ])('leaves no comma and loses no comment: %s', (_, text, rest) => {
    expect(removeEmptyList(text, ['list'])).toBe(rest)
    expect(parseConfig(rest, {}).problems.filter((problem) => /comma|expected/i.test(problem))).toEqual([])
  })

  test.each(['{"list":[1]}', '{"list":[ // one\n]}', '{"list":{}}', '{"other":[]}', '{'])(
    'is nothing else: %s stays',
    (text) => {
      expect(removeEmptyList(text, ['list'])).toBe(text)
    },
  )
})
