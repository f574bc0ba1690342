// Saves go live while the database of a gateway does not answer: no reload waits for the store.
import { describe, expect, test } from 'vitest'
import { createProxy } from '../contract/postgres-proxy.ts'
import { newSchema, whyNoPostgres } from '../contract/postgres-stage.ts'
import { onFileEnd } from '../file-end.ts'
import { type Gateway, makeConfigDir, post, startGateway, writeFiles } from './gateway.ts'

const says = (word: string) => ({ 'hooks/transforms/x.ts': `export default () => ({ message: '${word}' })` })
const mapping = { match: { path: 'x' }, transform: { module: 'x.ts' }, deliver: false }

const countLive = ({ output }: Gateway) => output().split('"msg":"x.ts is live').length - 1

describe.skipIf(whyNoPostgres)('a gateway whose database does not answer', () => {
  test('serves saves while the store still waits for the answer to a request', async () => {
    const { url, drop } = await newSchema()
    onFileEnd(drop)
    const proxy = await createProxy(url)
    const config = { hooks: { mappings: [mapping] }, store: { url: proxy.url } }
    const gateway = await startGateway({ dir: makeConfigDir({ config, files: says('1') }) })
    const save = async (word: string) => {
      const before = countLive(gateway)
      writeFiles(gateway.dir, says(word))
      await expect.poll(() => countLive(gateway), { interval: 20 }).toBe(before + 1)
    }
    await save('2')
    expect(await post(gateway, 'x', {})).toMatchObject({ ok: true })
    proxy.loseAnswers(true)
    let isAnswered = false
    const answer = post(gateway, 'x', {}).finally(() => {
      isAnswered = true
    })
    await save('3')
    await save('4')
    expect(isAnswered).toBe(false)
    proxy.loseAnswers(false)
    await answer
    expect(await gateway.stop()).toBe(0)
  })
})
