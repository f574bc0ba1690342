import { open, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createStage, says } from './stage.ts'

const rounds = 20

/** The ways in which editors and tools write a file. Their pauses are a part of what is tested. */
const styles: Record<string, (file: string, text: string) => Promise<void>> = {
  'in place': (file, text) => writeFile(file, text),
  'by rename': async (file, text) => {
    await writeFile(`${file}~`, text)
    await rename(`${file}~`, file)
  },
  'in two chunks 15 ms apart': (file, text) => writeTwice(file, text, 15),
  'in two chunks 40 ms apart': (file, text) => writeTwice(file, text, 40),
  'twice within 15 ms': async (file, text) => {
    await writeFile(file, says('an earlier save'))
    await pause(15)
    await writeFile(file, text)
  },
  'by delete and re-create': async (file, text) => {
    await rm(file)
    await pause(5)
    await writeFile(file, text)
  },
}

async function writeTwice(file: string, text: string, ms: number): Promise<void> {
  const handle = await open(file, 'w')
  await handle.write(text.slice(0, 20))
  await pause(ms)
  await handle.write(text.slice(20))
  await handle.close()
}

describe('saves of transform modules', () => {
  test.each(Object.keys(styles))(
    `when a file is saved %s, its last content goes live ${rounds} of ${rounds} times`,
    async (style) => {
      const stage = await createStage({ 'x.ts': says('0') })
      for (let round = 1; round <= rounds; round += 1) {
        await styles[style]?.(join(stage.root, 'x.ts'), says(String(round)))
        await stage.waitForAnswer('x', String(round))
      }
      await stage.live.reload()
      expect(await stage.answer('x')).toBe(String(rounds))
    },
  )

  test('a module uses the newest versions of its helper and of JSON, .mjs and .cjs files', async () => {
    const stage = await createStage({
      'x.ts': `import { a } from './lib/a.ts'
import b from './b.json'
import { c } from './c.mjs'
import d from './d.cjs'
export default () => ({ message: [a, b.b, c, d.d].join() })`,
      'lib/a.ts': 'export const a: number = 1',
      'b.json': '{"b":1}',
      'c.mjs': 'export const c = 1',
      'd.cjs': 'module.exports = { d: 1 }',
    })
    await stage.waitForAnswer('x', '1,1,1,1')
    await stage.write({ 'lib/a.ts': 'export const a: number = 2' })
    await stage.waitForAnswer('x', '2,1,1,1')
    await stage.write({ 'b.json': '{"b":2}' })
    await stage.waitForAnswer('x', '2,2,1,1')
    await stage.write({ 'c.mjs': 'export const c = 2' })
    await stage.waitForAnswer('x', '2,2,2,1')
    await stage.write({ 'd.cjs': 'module.exports = { d: 2 }' })
    await stage.waitForAnswer('x', '2,2,2,2')
    expect(stage.live.status().degraded).toBe(false)
  })

  test('a module and its helper that are saved together go live together in every answer', async () => {
    const renderEntry = (version: number) =>
      `import { helper } from './helper.ts'\n${says('')}`.replace('""', `\`${version}/\${helper}\``)
    const renderHelper = (version: number) => `export const helper = ${version}\n`
    const stage = await createStage({ 'x.ts': renderEntry(0), 'helper.ts': renderHelper(0) })
    const seen = new Set<string>()
    for (let version = 1; version <= 20; version += 1) {
      await Promise.all([
        stage.write({ 'x.ts': renderEntry(version) }),
        stage.write({ 'helper.ts': renderHelper(version) }),
      ])
      for (let answer = ''; answer !== `${version}/${version}`;) {
        await new Promise((resolve) => setImmediate(resolve))
        answer = await stage.answer('x')
        seen.add(answer)
      }
    }
    expect([...seen].filter((answer) => answer.split('/')[0] !== answer.split('/')[1])).toEqual([])
    expect(seen.size).toBeGreaterThanOrEqual(20)
  })

  test('200 saves during a loop of requests make no request fail, and the last save is live in the end', async () => {
    const stage = await createStage({ 'x.ts': says('0') })
    const answers: string[] = []
    const saving = new AbortController()
    const requests = (async () => {
      while (!saving.signal.aborted) {
        answers.push(await stage.answer('x'))
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    for (let version = 1; version <= 200; version += 1) {
      await stage.write({ 'x.ts': `const version = '${version}'\nexport default () => ({ message: version })\n` })
      await pause(5)
    }
    await stage.waitForAnswer('x', '200')
    const later = await Promise.all(Array.from({ length: 20 }, () => stage.answer('x')))
    saving.abort()
    await requests
    expect(answers.filter((answer) => !/^\d+$/.test(answer))).toEqual([])
    // no answer is from an older version than the answer before it
    expect(answers.map(Number)).toEqual(answers.map(Number).toSorted((one, other) => one - other))
    expect(new Set(later)).toEqual(new Set(['200']))
  })
})
