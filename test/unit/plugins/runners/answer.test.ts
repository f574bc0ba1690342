// The reply and the verdict in the structured output of a model.
import { expect, test } from 'vitest'
import { parseIncompleteJson } from '../../../../src/plugins/runners/shared/ai/call.ts'
import { readVerdictReply } from '../../../../src/plugins/runners/shared/ai/answer.ts'

const read = (text: string) =>
  readVerdictReply(
    { text, toolInput: undefined },
    { form: 'structured-output', words: ['pass', 'fail'] },
    parseIncompleteJson,
  )

test.each([
  '{"reply":"Fine.","verdict":"pass"}',
  '```json\n{"reply":"Fine.","verdict":"pass"}\n```',
  '```\n{"reply":"Fine.","verdict":"pass"}```',
])('an object is read with and without a code fence: %j', async (text) => {
  expect(await read(text)).toMatchObject({ text: 'Fine.', verdict: { word: 'pass' } })
})

test('a long run of blanks in an answer is read in linear time', async () => {
  const text = `{"reply":"Fine."${' '.repeat(400_000)}x`
  expect(await read(text)).toMatchObject({ text: expect.any(String) })
})
