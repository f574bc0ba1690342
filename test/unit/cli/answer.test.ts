import { expect, test } from 'vitest'
import { renderAnswer } from '../../../src/cli/mcp/answer.ts'

const secret = 'only-in-the-env-file-0123456789'

test.each([0, 1, 15, 31])(
  'no part of a secret is shown where a long text is cut, %d characters after the secret begins',
  (shown) => {
    const note = `${'x'.repeat(8_000 - shown)}${secret}${'y'.repeat(100)}`
    const answer = renderAnswer({ note, after: 'z' }, { secrets: [secret], rest: '' })
    expect(answer).toContain('[Cut here: ')
    expect(answer).not.toMatch(/xo|only/)
    expect(answer).toContain('"after": "z"')
  },
)
