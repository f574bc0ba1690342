// Every scheme that a mapping can name in `verify.scheme`, besides generic-hmac and those defined in code.
import { senders } from '../senders.ts'
import type { Scheme } from './scheme.ts'

export const schemes: readonly Scheme[] = senders.flatMap(({ source, label, docs, scheme, schemes: several }) => {
  if (docs === undefined) return []
  return (several ?? [scheme]).map(({ id = source, variant, ...row }) => ({
    ...row,
    id,
    source,
    label: variant === undefined ? label : `${label} (${variant})`,
    docs,
  }))
})
