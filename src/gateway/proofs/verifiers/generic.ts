// Schemes for senders that are not listed. The settings describe generic-hmac; token and basic are a shared secret in a header.
import type { VerifySettings } from '../../../core/model/verify.ts'
import { urlSecretHeader } from '../../../core/model/delivery.ts'
import { eventHandshakes, urlHandshakes } from './handshakes.ts'
import { toSettingProblem, requireSetting } from './proof.ts'
import type { HmacScheme, Scheme } from '../../../model/scheme.ts'

const genericScheme = 'generic-hmac'

const unlisted = { source: undefined, docs: '', confidence: 'verified' } as const
const plainSchemes: readonly Scheme[] = [
  { ...unlisted, id: 'token', kind: 'token', header: undefined, handshakes: eventHandshakes },
  { ...unlisted, id: 'basic', kind: 'basic', handshakes: eventHandshakes },
  {
    ...unlisted,
    id: 'url-secret',
    kind: 'token',
    header: urlSecretHeader,
    handshakes: urlHandshakes,
  },
]

/** Names of the schemes that do not belong to one sender. */
export const unlistedNames: readonly string[] = [genericScheme, ...plainSchemes.map(({ id }) => id)]

/** The scheme of these settings, if it does not belong to one sender. Throws as `buildGenericScheme` does. */
export function findUnlistedScheme(settings: VerifySettings): Scheme | undefined {
  if (settings.scheme === genericScheme) return buildGenericScheme(settings)
  if (settings.scheme === 'url-secret' && settings.header !== undefined)
    throw toSettingProblem(settings, 'reads the secret from the URL, so verify.header has no effect. Remove it.')
  return plainSchemes.find(({ id }) => id === settings.scheme)
}

/** Throws `config-invalid` for a template that proves less than it seems to. */
function buildGenericScheme(settings: VerifySettings): HmacScheme {
  const header = requireSetting(settings, 'header', 'the header with the signature')
  const { algorithm, encoding, prefix = '', timestamp, secretEncoding, template = '{body}' } = settings
  if (!template.includes('{body}'))
    throw toSettingProblem(
      settings,
      'needs {body} in verify.template: without it, the signature does not cover the body.',
    )
  if ((timestamp !== undefined) !== template.includes('{timestamp}')) {
    throw toSettingProblem(
      settings,
      'needs both verify.timestamp and {timestamp} in verify.template, or neither of them.',
    )
  }
  if (/\{(?:id|form)\}/.test(template))
    throw toSettingProblem(settings, 'does not support {id} and {form}. Use {header:name}.')
  return {
    id: genericScheme,
    source: undefined,
    kind: 'hmac',
    header,
    template,
    ...(algorithm && { algorithm }),
    ...(encoding && { encoding }),
    syntax: /[,;]/.test(prefix) ? { prefix } : { prefix, isList: true },
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
export function applyHeaderSettings(scheme: HmacScheme, settings: VerifySettings): HmacScheme {
  const { timedTemplate } = scheme
  if (timedTemplate === undefined) return scheme
  const { header = scheme.header, timestamp } = settings
  if (timestamp === undefined) return { ...scheme, header }
  const place = { in: 'header', name: timestamp.header, unit: timestamp.unit } as const
  return { ...scheme, header, template: timedTemplate, timestamp: place, toleranceSeconds: 300 }
}
