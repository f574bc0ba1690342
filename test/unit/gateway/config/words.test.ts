import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../src/gateway/config/config.ts'

function findProblems(hooks: object): string {
  return parseConfig(JSON.stringify({ hooks }), {}).problems.join('\n')
}

describe('unknown words', () => {
  test('a misspelled word is shown with the word that was probably meant', () => {
    expect(findProblems({ onTransformError: 'prak' })).toBe(
      'hooks.onTransformError: expected one of "park", "reject", found "prak". Did you mean "park"?',
    )
    const verify = { scheme: 'generic-hmac', secret: 's', header: 'x', algorithm: 'sha265' }
    expect(findProblems({ mappings: [{ verify }] })).toContain('found "sha265". Did you mean "sha256"?')
  })

  test('a word that is far from every allowed one is not shown, because it may be a secret', () => {
    const secret = 'whsec_c3VwZXJzZWNyZXQ'
    const verify = { scheme: 'generic-hmac', secret: 's', header: 'x', encoding: secret }
    const said = findProblems({ mappings: [{ verify, action: secret }], onTransformError: secret })
    expect(said).toContain(
      'hooks.mappings[0].verify.encoding: expected one of "hex", "base64", "base64url", found a string',
    )
    expect(said).not.toContain(secret)
  })
})
