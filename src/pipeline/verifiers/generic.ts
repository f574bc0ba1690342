// generic-hmac: a scheme that the operator describes in the settings, for senders that are not listed.
import type { VerifySettings } from '../../model/verify.ts'
import { fault, need } from './proof.ts'
import type { HmacScheme } from './scheme.ts'

export const genericScheme = 'generic-hmac'

/** Throws `config-invalid` for a template that proves less than it seems to. */
export function toGenericScheme(settings: VerifySettings): HmacScheme {
  const header = need(settings, 'header', 'the header with the signature')
  const { algorithm, encoding, prefix, timestamp, secretEncoding, template = '{body}' } = settings
  if (!template.includes('{body}'))
    throw fault(settings, 'needs {body} in verify.template: without it, the signature does not cover the body.')
  if ((timestamp !== undefined) !== template.includes('{timestamp}')) {
    throw fault(settings, 'needs both verify.timestamp and {timestamp} in verify.template, or neither of them.')
  }
  if (/\{(?:id|form)\}/.test(template)) throw fault(settings, 'does not support {id} and {form}. Use {header:name}.')
  return {
    id: genericScheme,
    source: undefined,
    kind: 'hmac',
    header,
    template,
    ...(algorithm && { algorithm }),
    ...(encoding && { encoding }),
    ...(prefix && { syntax: { prefix } }),
    ...(secretEncoding && { secretEncoding }),
    ...(timestamp && {
      timestamp: { in: 'header', name: timestamp.header, unit: timestamp.unit },
      toleranceSeconds: 300,
    }),
    docs: '',
    confidence: 'verified',
  }
}

/** Grafana lets its user choose the header, and a second header with a time that is signed too. */
export function toNamedScheme(scheme: HmacScheme, settings: VerifySettings): HmacScheme {
  const { timedTemplate } = scheme
  if (timedTemplate === undefined) return scheme
  const { header = scheme.header, timestamp } = settings
  if (timestamp === undefined) return { ...scheme, header }
  const place = { in: 'header', name: timestamp.header, unit: timestamp.unit } as const
  return { ...scheme, header, template: timedTemplate, timestamp: place, toleranceSeconds: 300 }
}
