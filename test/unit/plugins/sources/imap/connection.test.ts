// What a refused login says about the password, by the code of the server.
import { expect, test } from 'vitest'
import { toFailure } from '../../../../../src/plugins/sources/imap/connection.ts'
import { ImapConfig } from '../../../../../src/plugins/sources/shared/kit.ts'

const imap = ImapConfig.parse({ host: 'imap.example.com', user: 'mira@example.com', password: 'pw_0123456789' })

const refuse = (serverResponseCode: string) =>
  toFailure({ authenticationFailed: true, responseStatus: 'NO', serverResponseCode }, imap)

test('a refused password is named, and is not tried again soon', () => {
  const { message, retryAfterMs } = refuse('AUTHENTICATIONFAILED')
  expect(message).toContain('refused the user or the password (AUTHENTICATIONFAILED)')
  expect(retryAfterMs).toBe(300_000)
})

test.each(['UNAVAILABLE', 'LIMIT', 'INUSE'])('a login that is refused with %s does not blame the password', (code) => {
  const { message, retryAfterMs } = refuse(code)
  expect(message).toBe(`imap.example.com refused a command (${code}).`)
  expect(retryAfterMs).toBeUndefined()
})
