// The tsconfig.json for editors follows the installation, unless somebody edited it.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createEditorConfig, renderEditorConfig, renewEditorConfig } from '../../../src/cli/scaffold/folder.ts'
import { makeFolder } from '../../e2e/gateway.ts'

const current = renderEditorConfig()
const gone = renderEditorConfig({
  typeRoots: ['/gone/node_modules/@types'],
  paths: { hookloom: ['/gone/define.d.ts'], zod: ['/gone/zod'], 'zod/v4': ['/gone/zod/v4'] },
})

test.each([
  ['has paths of an installation that is gone', gone, current],
  ['has such paths and was edited', gone.replace('"strict": true', '"strict": false'), undefined],
  ['has such paths and another alias', gone.replace('"zod": [', '"mine": ["./x.ts"], "zod": ['), undefined],
  ['is current', current, undefined],
  ['is no JSON', '{', undefined],
])('a tsconfig.json that %s is renewed only if this program wrote it', async (_, text, expected) => {
  const dir = makeFolder()
  await createEditorConfig(dir)
  const file = join(dir, 'hooks/tsconfig.json')
  writeFileSync(file, text)
  await renewEditorConfig(dir)
  expect(readFileSync(file, 'utf8')).toBe(expected ?? text)
})

test('a missing tsconfig.json stays missing', async () => {
  await expect(renewEditorConfig(makeFolder())).resolves.toBeUndefined()
})
