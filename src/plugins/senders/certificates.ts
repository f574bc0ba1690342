// The hosts of the certificates with which senders sign, and of the URLs that they ask to be fetched.
import type { PinRule } from '../../define.ts'

const day = 86_400_000

/** The hosts of SNS, with the check of the libraries of AWS. */
const snsHost = /^sns\.[a-z0-9-]{3,}\.amazonaws\.com(?:\.cn)?$/

// the API has the same host name, and can answer with text that the caller chose: so only the paths of certificates are allowed
export const snsCertificate: PinRule = {
  host: snsHost,
  path: /^\/SimpleNotificationService-[\w-]+\.pem$/,
  maxAgeMs: day,
}

/** The rule for SubscribeURL, which is one request to the API. */
export const snsConfirmation: PinRule = { host: snsHost, path: /^\/$/, maxAgeMs: 0 }

export const paypalCertificate: PinRule = {
  host: /^api(?:-m)?(?:\.sandbox)?\.paypal\.com$/,
  path: /^\/v1\/notifications\/certs\/[\w-]+$/,
  maxAgeMs: day,
}
