// A row of the table of senders: how its requests are recognised, what it calls its events and deliveries, and what it proves.
import { parsePath, type Path } from '../path.ts'
import type { Scheme } from '../verifiers/scheme.ts'

/** Where a fact is found. `key`: the name of a top-level field; `all`: every part, joined. */
export type Fact =
  | { readonly in: 'header'; readonly name: string }
  | { readonly in: 'body'; readonly path: Path }
  | { readonly in: 'key'; readonly like: RegExp }
  | { readonly in: 'all'; readonly parts: readonly Fact[] }

/** A header that shows who the sender is: by its presence, by its value, or together with another header. */
export type Mark = { readonly header: string; readonly like?: RegExp; readonly beside?: string }

type Named = {
  /** The name in `source`. */
  readonly source: string
  /** The name that people read. */
  readonly label: string
}

/** Without marks the headers do not show the sender: only its name does. The first fact that is found counts. */
type Recognised = {
  readonly marks?: readonly Mark[]
  readonly event?: readonly Fact[]
  /**
   * Must be the same for a repeated delivery and different for every other one. A wrong id loses events; a missing id loses
   * none. So leave out what repeats (Alertmanager's groupKey, GitLab's X-Gitlab-Event-UUID, WooCommerce's delivery id, a
   * hash of the second) and the ids inside batches.
   */
  readonly deliveryId?: readonly Fact[]
  readonly from?: Path
  readonly subject?: Path
}

type RowOf<Each> = Each extends Scheme ? Omit<Each, 'id' | 'source' | 'label' | 'docs'> : never

/** How a sender proves its requests, with the handshakes that belong to the proof. `id` is the name in `verify.scheme`. */
export type SchemeRow = RowOf<Scheme> & {
  /** Default: the name of the sender. */
  readonly id?: string
  /** Follows the label of a sender that has several schemes. */
  readonly variant?: string
}
type NamedSchemeRow = SchemeRow & { readonly id: string }

/** A sender with a scheme has the page that documents it. */
type Proven =
  | { readonly docs?: never; readonly scheme?: never; readonly schemes?: never }
  | { readonly docs: string; readonly scheme: SchemeRow; readonly schemes?: never }
  | { readonly docs: string; readonly scheme?: never; readonly schemes: readonly NamedSchemeRow[] }

export type Sender = Named & Recognised & Proven

export const sent = (header: string, beside?: string): Mark => (beside === undefined ? { header } : { header, beside })
export const agent = (like: RegExp): Mark => ({ header: 'user-agent', like })
export const header = (name: string): Fact => ({ in: 'header', name })
export const body = (path: string): Fact => ({ in: 'body', path: parsePath(path) })
export const key = (like: RegExp): Fact => ({ in: 'key', like })
export const all = (...parts: Fact[]): Fact => ({ in: 'all', parts })
