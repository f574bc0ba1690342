// The rows of the table of senders: how a sender is recognised, and where its requests contain the event, the delivery id and other facts.

/** The keys of objects and the indexes of arrays on the way to a value. */
type ValuePath = readonly (string | number)[]

/** The place of a fact. `key`: the name of the top-level field that matches `like`. `all`: all parts, joined. */
export type Fact =
  | { readonly in: 'header'; readonly name: string }
  | { readonly in: 'body'; readonly path: ValuePath }
  | { readonly in: 'key'; readonly like: RegExp }
  | { readonly in: 'all'; readonly parts: readonly Fact[] }

/** A header that identifies the sender: by its presence, by its value, or together with another header. */
export type Mark = { readonly header: string; readonly like?: RegExp; readonly beside?: string }

/**
 * A row of the table. `event` and `deliveryId` list places in a request, such as a header or a field of the body: the first place that has a value
 * counts. `from` and `subject`: the paths of the author and of the subject in the payload.
 */
export type SenderFacts = {
  /** The id of the sender, such as `github`: the value that deliveries, conditions and presets use. */
  readonly source: string
  /** The name that people read. */
  readonly label: string
  /** Without marks, the headers do not show the sender: only a proof or the payload names it. */
  readonly marks?: readonly Mark[]
  readonly event?: readonly Fact[]
  /**
   * Must be the same for a repetition of a delivery, and different for every other delivery. A wrong id loses events; a missing id loses none.
   * So leave out ids that are reused (Alertmanager's groupKey, GitLab's X-Gitlab-Event-UUID, WooCommerce's delivery id, a hash of the second)
   * and the ids inside batches.
   */
  readonly deliveryId?: readonly Fact[]
  /** True: the sender may also write a number of the payload as a text. So after few payloads, the type of such a field allows both. */
  readonly hasNumbersAsTexts?: true
  /** The fields of its forms whose text is JSON. */
  readonly jsonFields?: readonly string[]
  readonly from?: ValuePath
  readonly subject?: ValuePath
}

/**
 * The sender of a delivery, and how it was recognised. If only `payload.source` names it, its event and delivery id are not read: any
 * payload may have such a field, and a wrong delivery id would lose deliveries.
 */
export type RecognisedSender = { readonly facts: SenderFacts; readonly shownBy: 'proof' | 'headers' | 'payload' }
