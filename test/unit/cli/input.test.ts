import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { readRequest } from '../../../src/cli/requests/input.ts'

/** Blanks, and then the text. */
function* listChunks(blanks: number, text: string): Generator<Buffer> {
  const blank = Buffer.alloc(1_000_000, ' ')
  for (let count = 0; count < blanks; count += 1) yield blank
  yield Buffer.from(text)
}
const readStream = (blanks: number) => readRequest({ stdin: Readable.from(listChunks(blanks, '{"a":1}')) }, '-')

test('standard input is read to its end, and refused if it has more than 100 MB', async () => {
  expect((await readStream(3)).payload).toEqual({ a: 1 })
  await expect(readStream(101)).rejects.toThrow('- cannot be read: it has more than 100 MB.')
})
