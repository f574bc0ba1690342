import { expect, test } from 'vitest'
import { Problem } from '../../../../src/core/model/problem.ts'
import type { CheckedHead } from '../../../../src/core/mapping/delivery.ts'
import { createAccess } from '../../../../src/gateway/http/access.ts'
import { createAdmission } from '../../../../src/gateway/http/admission.ts'
import { createThrottle } from '../../../../src/gateway/http/throttle.ts'

const now = 1_700_000_000_000

function start() {
  const clock = () => now
  return createAdmission({
    access: createAccess({ clock }),
    tokens: createThrottle({ clock }),
    signers: createThrottle({ clock }),
  })
}

function toHead(token: CheckedHead['token']): CheckedHead {
  return { method: 'POST', url: '/hooks/in', path: 'in', headers: {}, client: '203.0.113.7', token, tokenId: undefined }
}

function catchCode(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    return error instanceof Problem ? error.code : String(error)
  }
  return undefined
}

const uncheckable = { isGatewaysFault: true, isProofShown: true }

test('a proof that the gateway cannot check does not count as a failure of its sender', () => {
  const admission = start()
  for (let count = 0; count < 30; count++) {
    expect(catchCode(() => admission.refuseUnproved(toHead('none'), uncheckable))).toBe('proof-unavailable')
  }
  expect(catchCode(() => admission.refuseUnproved(toHead('none')))).toBe('unauthorized')
  expect(catchCode(() => admission.checkToken(toHead('valid')))).toBeUndefined()
})

test('a wrong token counts as a failure even if the proof cannot be checked', () => {
  const admission = start()
  for (let count = 0; count < 20; count++) {
    expect(catchCode(() => admission.refuseUnproved(toHead('wrong'), uncheckable))).toBe('proof-unavailable')
  }
  expect(catchCode(() => admission.refuseUnproved(toHead('wrong'), uncheckable))).toBe('rate-limited')
  expect(catchCode(() => admission.checkToken(toHead('valid')))).toBe('rate-limited')
})

test('a valid token that does not open the hook is refused, and does not count as a failure', () => {
  const admission = start()
  for (let count = 0; count < 30; count++) {
    expect(catchCode(() => admission.refuseUnproved(toHead('valid')))).toBe('unauthorized')
  }
  expect(catchCode(() => admission.refuseUnproved(toHead('none')))).toBe('unauthorized')
})
