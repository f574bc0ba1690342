// A row of the table of senders: how the sender is recognised, where its requests have their event and delivery id, and how it proves them.
import type { Fact, Mark, SenderFacts } from '../../model/sender.ts'
import { parsePath } from '../path.ts'
import type { Scheme } from '../verifiers/scheme.ts'

type RowOf<Each> = Each extends Scheme ? Omit<Each, 'id' | 'source' | 'label' | 'docs'> : never

/** How a sender proves its requests, with the handshakes that belong to the proof. `id` is the name in `verify.scheme`. */
export type SchemeRow = RowOf<Scheme> & {
  /** Default: the name of the sender. */
  readonly id?: string
  /** Added to the label of a sender that has several schemes. */
  readonly variant?: string
}
type NamedSchemeRow = SchemeRow & { readonly id: string }

/** A sender with a scheme names the page that documents it. */
type SchemesOfSender =
  | { readonly docs?: never; readonly scheme?: never; readonly schemes?: never }
  | { readonly docs: string; readonly scheme: SchemeRow; readonly schemes?: never }
  | { readonly docs: string; readonly scheme?: never; readonly schemes: readonly NamedSchemeRow[] }

export type Sender = SenderFacts & SchemesOfSender

export const sent = (header: string, beside?: string): Mark => (beside === undefined ? { header } : { header, beside })
export const userAgent = (like: RegExp): Mark => ({ header: 'user-agent', like })
export const header = (name: string): Fact => ({ in: 'header', name })
export const body = (path: string): Fact => ({ in: 'body', path: parsePath(path) })
export const key = (like: RegExp): Fact => ({ in: 'key', like })
export const all = (...parts: Fact[]): Fact => ({ in: 'all', parts })
