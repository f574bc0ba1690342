import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadConfig, parseConfig } from '../../../../src/gateway/config/config.ts'
import { Problem } from '../../../../src/core/model/problem.ts'

const check = (text: string, env: Record<string, string> = {}): readonly string[] => parseConfig(text, env).problems
const checkData = (data: unknown, env: Record<string, string> = {}) => check(JSON.stringify(data), env)

describe('configuration files', () => {
  let dir: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'hookloom-config-'))
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  const write = (name: string, text: string | Uint8Array) => writeFileSync(join(dir, name), text)
  const catchProblem = (env: Record<string, string> = {}): Problem => {
    try {
      loadConfig({ dir, env })
    } catch (error) {
      if (error instanceof Problem) return error
    }
    throw new Error('it loaded')
  }

  test('the error of a folder without hookloom.jsonc names the command that creates the file', () => {
    const problem = catchProblem()
    expect(problem.code).toBe('config-missing')
    expect(problem.message).toContain('hookloom init')
    expect(problem.message).toContain(dir)
  })

  test('comments, trailing commas, a byte order mark and CRLF are accepted, and defaults are filled in', () => {
    write('hookloom.jsonc', '\uFEFF// mine\r\n{\r\n  /* here */ "server": { "port": 1234, },\r\n}\r\n')
    const { config, text, files } = loadConfig({ dir, env: {} })
    expect(config.server).toMatchObject({ port: 1234, host: '127.0.0.1', maxBodyBytes: 262_144 })
    expect(config.hooks).toMatchObject({ enabled: false, path: '/hooks', allowRequestSessionKey: false })
    expect(text).toContain('// mine')
    expect(files).toEqual([join(dir, 'hookloom.jsonc'), join(dir, '.env')])
  })

  test.each(['/', '/etc', '/etc/', '/usr/../etc/.', '//usr', '/var', 'link', 'link/', 'inner/../link'])(
    'the workspace %s is refused, because it is a folder of the system',
    (workspace) => {
      symlinkSync('/etc', join(dir, 'link'))
      const list = [{ id: 'main' }, { id: 'other', workspace }]
      write('hookloom.jsonc', JSON.stringify({ agents: { defaults: { workspace }, list } }))
      const lines = catchProblem().frame?.split('\n')
      expect(lines).toHaveLength(2)
      expect(lines?.[0]).toMatch(/^hookloom\.jsonc:1:\d+ agents\.defaults\.workspace is \/\w*, a folder of the system/)
      expect(lines?.[1]).toContain('agents.list[1].workspace is /')
    },
  )

  test.each(['/etc/hookloom/agents', '/var/lib/hookloom', '/usr/src/app', '/srv', '.', 'agents/main', 'etc', 'link'])(
    'the workspace %s is accepted',
    (workspace) => {
      symlinkSync(dir, join(dir, 'link'))
      write('hookloom.jsonc', JSON.stringify({ agents: { defaults: { workspace } } }))
      expect(loadConfig({ dir, env: {} }).config.agents.defaults.workspace).toBe(workspace)
    },
  )

  test('a variable comes from .env, and the environment takes precedence over .env', () => {
    write('hookloom.jsonc', '{ "gateway": { "token": "${ONE}" }, "hooks": { "token": "a-${TWO}" } }')
    write('.env', 'ONE=from-the-env-file\nTWO=from-the-env-file\n')
    const { config } = loadConfig({ dir, env: { TWO: 'from-the-environment' } })
    expect(config.gateway.token).toBe('from-the-env-file')
    expect(config.hooks.token).toBe('a-from-the-environment')
  })

  test('all problems of a configuration are reported at once, one line each, including those of .env', () => {
    write('hookloom.jsonc', '{ "hooks": { "enabled": true, "mappings": [{ "mesageTemplate": "x" }] } }')
    write('.env', 'no assignment here\n')
    const problem = catchProblem()
    expect(problem.code).toBe('config-invalid')
    expect(problem.message).toBe('hookloom.jsonc has 3 problems')
    expect(problem.frame?.split('\n')).toEqual([
      '.env:1 must be NAME=value.',
      'hookloom.jsonc:1:46 hooks.mappings[0].mesageTemplate is an unknown key. Did you mean messageTemplate?',
      'hookloom.jsonc:1:3 hooks.token is required when hooks.enabled is true. Set it to "${HOOKLOOM_TOKEN}" and put the value into .env.',
    ])
  })

  test('a single problem of a configuration is reported in the singular', () => {
    write('hookloom.jsonc', '{ "store": 4 }')
    expect(catchProblem().message).toBe('hookloom.jsonc has 1 problem')
  })

  test('configuration bytes that are not UTF-8 are refused', () => {
    write('hookloom.jsonc', Uint8Array.of(0x7b, 0xff, 0x7d))
    expect(catchProblem().message).toContain('not UTF-8')
  })

  test.each(['hookloom.jsonc', '.env'])(
    '%s is refused at once if it is not a regular file, or if it is too large',
    (name) => {
      write('hookloom.jsonc', '{}')
      const path = join(dir, name)
      const make = {
        'it is not a regular file': [() => execFileSync('mkfifo', [path]), () => symlinkSync('/dev/zero', path)],
        'it has 20000000 bytes; the limit is 10000000': [() => writeFileSync(path, Buffer.alloc(20_000_000))],
      }
      for (const [why, makers] of Object.entries(make)) {
        for (const each of makers) {
          rmSync(path, { force: true })
          each()
          expect(catchProblem().message).toBe(`${name} in ${dir} cannot be read: ${why}.`)
        }
      }
    },
  )

  test('a configuration behind a symlink is read', () => {
    write('elsewhere.jsonc', '{ "store": { "retainDays": 3 } }')
    symlinkSync(join(dir, 'elsewhere.jsonc'), join(dir, 'hookloom.jsonc'))
    expect(loadConfig({ dir, env: {} }).config.store.retainDays).toBe(3)
  })
})

describe('syntax errors of the configuration', () => {
  test('only the first syntax error is reported, with line and column', () => {
    expect(check('{\n  "server": {},\n  "hooks" {}\n}')).toEqual(['hookloom.jsonc:3:11 expected ":"'])
  })

  test.each([
    [
      '{\n  "server": {\n    "port": 1\n  }\n',
      '5:1',
      'unexpected end of the file: the "{" of line 1 is not closed. Expected "}"',
    ],
    [
      '{\n  "hooks": {\n    "presets": ["github"',
      '3:25',
      'unexpected end of the file: the "[" of line 3 is not closed. Expected "]"',
    ],
    ['{\n  "server": {},', '2:16', 'unexpected end of the file: the "{" of line 1 is not closed. Expected "}"'],
    ['{\n  "hooks": { "presets": ["github" }\n}', '2:35', 'expected "]" for the "[" of line 2, found "}"'],
  ])('the error for a bracket that is not closed names its line: %j', (text, at, wrong) => {
    expect(check(text)).toEqual([`hookloom.jsonc:${at} ${wrong}`])
  })

  test('a configuration that is not an object is refused, and so is an empty file', () => {
    expect(check('[]')).toEqual(['hookloom.jsonc:1:1 must contain one object, found an empty array.'])
    expect(check('// nothing\n')).toEqual(['hookloom.jsonc:2:1 expected a value'])
  })

  test('the error for a duplicate key names the line of the first one', () => {
    expect(check('{ "server": {},\n  "server": { "port": 1 } }')).toEqual([
      'hookloom.jsonc:2:3 duplicate key "server": line 1 has it already. Move what is in this one there',
    ])
    expect(check('{ "server": { "port": 1 }, "store": { "retainDays": 1 } }')).toEqual([])
  })

  test('a number that JavaScript would round is an error that says to put its digits in quotes', () => {
    const toText = (id: string) =>
      `{ "hooks": { "mappings": [{ "match": { "path": "x", "payload": { "id": ${id} } }, "messageTemplate": "m" }] } }`
    expect(check(toText('653247040368672769'))).toEqual([
      expect.stringMatching(
        /^hookloom\.jsonc:1:\d+ a double does not hold the number 653247040368672769\. .*"653247040368672769"$/,
      ),
    ])
    expect(check(toText('"653247040368672769"'))).toEqual([])
    expect(check(toText('1.50'))).toEqual([])
  })

  test.each([
    [{ hooks: { mappings: [{ match: { path: 'x', headers: { __key__: 'a' } }, messageTemplate: 'm' }] } }],
    [{ hooks: { mappings: [{ match: { path: 'x', payload: { __key__: 'a' } }, messageTemplate: 'm' }] } }],
    [{ hooks: { mappings: [{ match: { path: 'x', any: [{ payload: { __key__: 'a' } }] }, messageTemplate: 'm' }] } }],
    [{ tokens: { __key__: { token: '0123456789abcdefgh', may: ['runs'] } } }],
    [{ runners: { __key__: { kind: 'command', command: 'x' } } }],
    [{ models: { aliases: { __key__: 'openai/x' } } }],
    [{ limits: { __key__: { maxRunning: 1 } } }],
    [{ channels: { webhook: { endpoints: { __key__: { url: 'http://x' } } } } }],
    [{ __key__: { hooks: {} } }],
  ])('a key __proto__ is refused with its place, and not dropped: %j', (config) => {
    const text = JSON.stringify(config).replace('__key__', '__proto__')
    const column = text.indexOf('"__proto__"') + 1
    expect(check(text)).toEqual([
      `hookloom.jsonc:1:${column} no key can have the name "__proto__". Remove it, or choose another name`,
    ])
  })
})

describe('secrets from files', () => {
  let dir: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'hookloom-secrets-'))
  })
  afterEach(() => rmSync(dir, { recursive: true }))
  const write = (name: string, text: string) => writeFileSync(join(dir, name), text)

  const writeSecretFile = (text: string | Uint8Array) => {
    const path = join(dir, 'secret')
    writeFileSync(path, text)
    return path
  }
  const checkFile = (path: string) => checkData({ gateway: { token: `\${file:${path}}` } })[0]

  test('a secret from a file loses its last line break, and no variable in it is substituted', () => {
    const of = (text: string) =>
      parseConfig(JSON.stringify({ gateway: { token: `a-token-with \${file:${writeSecretFile(text)}} inside` } }), {
        A: 'x',
      }).config?.gateway.token
    expect(of('hush')).toBe('a-token-with hush inside')
    expect(of('hush\n')).toBe('a-token-with hush inside')
    expect(of('two\nlines\r\n')).toBe('a-token-with two\nlines inside')
    expect(of('${A} ${file:/etc/hostname}')).toBe('a-token-with ${A} ${file:/etc/hostname} inside')
  })

  test.each<[string, () => string, string]>([
    ['a relative path', () => 'run/secret', 'needs the file "run/secret", which is not an absolute path.'],
    ['no path', () => '', 'needs the file "", which is not an absolute path.'],
    ['a file that is missing', () => join(dir, 'gone'), 'which cannot be used: it does not exist.'],
    ['a folder', () => dir, 'which cannot be used: it is not a regular file.'],
    ['a device', () => '/dev/zero', 'which cannot be used: it is not a regular file.'],
    [
      'a large file',
      () => writeSecretFile('x'.repeat(65_537)),
      'which cannot be used: it has 65537 bytes; the limit is 65536.',
    ],
    [
      'bytes that are no text',
      () => writeSecretFile(Buffer.from([0xff, 0xfe, 0x41])),
      'which cannot be used: it is not UTF-8.',
    ],
    ['an empty file', () => writeSecretFile('\n'), 'which is empty. Write the secret into it.'],
  ])('the error for a secret file names the key and the reason: %s', (_, toPath, why) => {
    const problem = checkFile(toPath())
    expect(problem).toMatch(/^gateway\.token needs the file "/)
    expect(problem).toContain(why)
  })

  test('secret files are read again at each load', () => {
    write('hookloom.jsonc', JSON.stringify({ gateway: { token: `\${file:${writeSecretFile('one-of-two-tokens')}}` } }))
    expect(loadConfig({ dir, env: {} }).config.gateway.token).toBe('one-of-two-tokens')
    writeSecretFile('two-of-two-tokens')
    expect(loadConfig({ dir, env: {} }).config.gateway.token).toBe('two-of-two-tokens')
  })
})

describe('variables in the configuration', () => {
  const readToken = (text: string, env: Record<string, string> = {}) =>
    parseConfig(JSON.stringify({ hooks: { token: text } }), env).config?.hooks.token

  test('the error of an unset variable names the key, only once, and the variable, and says where to set it', () => {
    expect(checkData({ hooks: { enabled: true, token: '${HOOK_TOKEN}' } })).toEqual([
      'hooks.token needs HOOK_TOKEN, which is not set. Set it in the environment or in .env.',
    ])
  })

  test('a channel whose secret is an unset variable causes no second error at a status or a callback', () => {
    const hooks = { mappings: [{ match: { path: 'x' }, status: 'review', callback: 'ci' }] }
    const webhook = { endpoints: { ci: { url: 'https://ci.example.com', secret: '${CI_SECRET}' } } }
    expect(checkData({ hooks, channels: { github: { token: '${GITHUB_TOKEN}' }, webhook } })).toEqual([
      expect.stringContaining('channels.github.token needs GITHUB_TOKEN'),
      expect.stringContaining('channels.webhook.endpoints.ci.secret needs CI_SECRET'),
    ])
    expect(checkData({ hooks })).toHaveLength(2)
  })

  test('an inherited property of the environment is not a variable', () => {
    expect(checkData({ hooks: { token: '${constructor}' } })[0]).toContain('needs constructor')
  })

  test('$${ is a literal ${, and the value of a variable is not substituted again', () => {
    expect(readToken('$${A}-of-the-hooks', { A: 'x' })).toBe('${A}-of-the-hooks')
    expect(readToken('${A}-of-the-hooks', { A: '${B}', B: 'x' })).toBe('${B}-of-the-hooks')
    expect(readToken('$5 and $ of the hooks', {})).toBe('$5 and $ of the hooks')
  })

  test('a ${ that no valid name and no } follow is refused', () => {
    for (const text of ['${', '${}', '${A', '${not-a-name}']) {
      expect(checkData({ hooks: { token: text } })[0]).toMatch(/^hooks\.token contains "\$\{"/)
    }
  })

  test('a blank variable is not accepted as a token', () => {
    expect(checkData({ hooks: { enabled: true, token: '${T}' } }, { T: '  ' })).toEqual([
      'hooks.token must not be blank',
    ])
  })

  test('variables in keys of the configuration are not substituted', () => {
    expect(checkData({ '${A}': 1 }, { A: 'store' })[0]).toMatch(/^\$\{A\} is an unknown key/)
  })
})

describe('keys and types of the configuration', () => {
  test('the error of an unknown key suggests the nearest key, or lists all keys', () => {
    expect(checkData({ hooks: { tokn: 'x' } })).toEqual(['hooks.tokn is an unknown key. Did you mean token?'])
    expect(checkData({ hooks: { mappings: [{ match: { patj: 'x' } }] } })).toEqual([
      'hooks.mappings[0].match.patj is an unknown key. Did you mean path?',
    ])
    expect(checkData({ gateway: { zzzzz: 1 } })).toEqual(['gateway.zzzzz is an unknown key. Keys here: token.'])
  })

  test('the error of a wrong type names the expected type and the found kind, never the value', () => {
    const secret = 'sk-very-secret'
    const lines = checkData({
      server: { port: secret, host: { a: secret } },
      hooks: {
        onTransformError: secret,
        presets: [7, {}],
        mappings: [
          { channel: secret, match: { payload: { a: { b: secret } } }, transform: { module: `../${secret}` } },
        ],
      },
      store: null,
    })
    expect(lines.join('\n')).not.toContain(secret)
    expect(lines).toEqual(
      expect.arrayContaining([
        'server.port: expected a number, found a string',
        'server.host: expected a string, found an object',
        'hooks.onTransformError: expected one of "park", "reject", found a string',
        'hooks.presets[0]: expected a string or an object, found a number',
        'hooks.presets[1].name: expected a string, found nothing',
        expect.stringMatching(/^hooks\.mappings\[0\]\.transform\.module must be a relative path/),
        'store: expected an object, found null',
      ]),
    )
  })

  test('hooks.path must not be /, and a valid path is normalized', () => {
    for (const path of ['/', '', '//', ' / ', '/a/../b', 'a b']) {
      expect(checkData({ hooks: { path } })[0]).toMatch(/^hooks\.path must be a path/)
    }
    expect(parseConfig('{ "hooks": { "path": "in/hooks/" } }', {}).config?.hooks.path).toBe('/in/hooks')
  })

  test('a key with an invalid value is reported only once, and not by a second rule', () => {
    expect(checkData({ hooks: { enabled: true, token: 4 } })).toEqual([
      'hooks.token: expected a string, found a number',
    ])
  })
})
