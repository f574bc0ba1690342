import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { readDevKeys } from '../../../src/cli/gateway/dev-keys.ts'

test('in hookloom dev, o opens the page, q stops the gateway, ? shows the keys, and any other line does nothing', async () => {
  const input = new PassThrough()
  const seen: string[] = []
  readDevKeys(input, {
    open: async () => void seen.push('open'),
    quit: () => seen.push('quit'),
    print: (text) => seen.push(text),
  })
  input.write('o\nsome words\n\n ?\n')
  input.end('q\n')
  await expect.poll(() => seen).toEqual(['open', expect.stringContaining('opens the page'), 'quit'])
})

test('a page that cannot be opened is an error in one line, and later keys work', async () => {
  const input = new PassThrough()
  const seen: string[] = []
  readDevKeys(input, {
    open: () => Promise.reject(new Error('No gateway answers.')),
    quit: () => seen.push('quit'),
    print: (text) => seen.push(text),
  })
  input.end('o\nq\n')
  await expect.poll(() => seen.toSorted()).toEqual(['No gateway answers.', 'quit'])
})
