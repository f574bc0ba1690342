// Where certificates may come from. A request names the URL, so only these are fetched.
import type { PinRule } from '../../model/verifier.ts'

const day = 86_400_000

/** The hosts of SNS, as its own libraries check them. */
export const snsHost = /^sns\.[a-z0-9-]{3,}\.amazonaws\.com(?:\.cn)?$/

// the API answers under the same name, with text of the caller's choice: only the certificates are files
export const snsCertificate: PinRule = {
  host: snsHost,
  path: /^\/SimpleNotificationService-[\w-]+\.pem$/,
  maxAgeMs: day,
}

/** SubscribeURL: the API itself, asked once. */
export const snsConfirmation: PinRule = { host: snsHost, path: /^\/$/, maxAgeMs: 0 }

export const paypalCertificate: PinRule = {
  host: /^api(?:-m)?(?:\.sandbox)?\.paypal\.com$/,
  path: /^\/v1\/notifications\/certs\/[\w-]+$/,
  maxAgeMs: day,
}
