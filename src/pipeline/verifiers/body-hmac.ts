// HMAC inside the body: the body is parsed before it is verified.
import { createHmac, type KeyObject } from 'node:crypto'
import { isJsonObject, type SentObject, type SentValue } from '../../base/json.ts'
import {
  readField,
  readJsonBody,
  findTimeFault,
  coversNothing,
  mismatch,
  type Proof,
  type ProofTools,
  validProof,
  acceptProof,
  refuseProof,
  isDigest,
} from './proof.ts'
import { createKeyring, parseSecretKey } from './keys.ts'
import type { BodyHmacScheme } from '../../model/scheme.ts'

export function createBodyHmacProof(scheme: BodyHmacScheme, tools: ProofTools): Proof {
  return scheme.form === 'mailgun' ? createMailgunProof(scheme, tools) : createAdyenProof(tools)
}

/**
 * Timestamp and token are signed, but not the event: an attacker who sees one delivery can forge its event. So the token is the
 * delivery id and counts once. https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
 */
function createMailgunProof(scheme: BodyHmacScheme, { settings, secrets, now }: ProofTools): Proof {
  const keys = createKeyring(secrets, (secret) => parseSecretKey(secret, settings, {}))
  const toleranceSeconds = settings.toleranceSeconds ?? scheme.toleranceSeconds
  return {
    secretHeaders: [],
    covers: { id: true, body: false },
    isClaimed: () => true,
    verify(request, at = now()) {
      const proof = readObject(readJsonBody(request.rawBody), 'signature')
      const [timestamp, token] = [readField(proof, 'timestamp'), readField(proof, 'token')]
      const signature = readField(proof, 'signature')
      if (timestamp === '' || token === '' || signature === '')
        return refuseProof('The body has no complete "signature" object.')
      // exactly ten digits: if one could move into the token, an old proof would get a new delivery id
      const time = timestamp.length === 10 ? timestamp : ''
      const timeFault = findTimeFault(time, { unit: 's', now: at, toleranceSeconds })
      if (timeFault !== undefined) return refuseProof(timeFault)
      return isSigned(keys(), timestamp + token, signature, 'hex') ? acceptProof(token) : mismatch
    },
  }
}

/** https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures/ */
function createAdyenProof({ settings, secrets }: ProofTools): Proof {
  const keys = createKeyring(secrets, (secret) => parseSecretKey(secret, settings, { encoding: 'hex' }))
  const isItem = (entry: SentValue): boolean => {
    const item = readObject(entry, 'NotificationRequestItem')
    const signature = readField(readObject(item, 'additionalData'), 'hmacSignature')
    return item !== undefined && signature !== '' && isSigned(keys(), toAdyenText(item), signature, 'base64')
  }
  return {
    secretHeaders: [],
    covers: coversNothing,
    isClaimed: () => true,
    verify(request) {
      const body = readJsonBody(request.rawBody)
      const items =
        isJsonObject(body) && Object.hasOwn(body, 'notificationItems') ? body['notificationItems'] : undefined
      if (!Array.isArray(items) || items.length === 0) return refuseProof('The body has no "notificationItems".')
      return items.every(isItem) ? validProof : mismatch
    },
  }
}

function toAdyenText(item: SentObject): string {
  const amount = readObject(item, 'amount')
  return [
    readField(item, 'pspReference'),
    readField(item, 'originalReference'),
    readField(item, 'merchantAccountCode'),
    readField(item, 'merchantReference'),
    readField(amount, 'value'),
    readField(amount, 'currency'),
    readField(item, 'eventCode'),
    readField(item, 'success'),
  ].join(':')
}

function isSigned(keys: readonly KeyObject[], text: string, signature: string, encoding: 'hex' | 'base64'): boolean {
  return keys.some((key) => isDigest(signature, createHmac('sha256', key).update(text).digest(encoding), encoding))
}

function readObject(value: SentValue | undefined, name: string): SentObject | undefined {
  const found = isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return isJsonObject(found) ? found : undefined
}
