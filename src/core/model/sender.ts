// A sender: how it is recognised, where its requests have their event, delivery id and other facts, and what answers it.

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

/** Reads the text, or the number as a text, at the first of these paths that has one: `read('issue.number', 'pull_request.number')`. */
export type PayloadReader = (...paths: readonly string[]) => string | undefined

/** What the channel with the name of the sender needs to answer an event where it happened. No function may throw. */
export type AnswerFacts = {
  /** The issue, pull request or merge request of the event, in the form of a recipient of the channel. */
  readonly place: (read: PayloadReader) => string | undefined
  /** The commit of the event, in the form of the channel. */
  readonly commit?: (read: PayloadReader) => string | undefined
  /** The text of the comment that the event is about, if the channel marks its comments in their text: a hook skips its own comments. */
  readonly commentText?: (read: PayloadReader) => string | undefined
  /** The id of the comment that the event is about, if the channel marks its comments by their id. */
  readonly commentId?: (read: PayloadReader) => string | undefined
}

/** The facts of a sender. */
export type SenderFacts = {
  /** The id of the sender, such as `github`: the `source` of deliveries, conditions and presets. No two senders have the same. */
  readonly name: string
  /** The name that people read. */
  readonly label: string
  /** Headers have lower-case names. Without marks, the headers do not show the sender: only a proof or the payload names it. */
  readonly marks?: readonly Mark[]
  /** The places of the event in the words of the sender. The first one that has a value counts. */
  readonly event?: readonly Fact[]
  /**
   * The places of the id of a delivery. The first one that has a value counts. It must be the same for a repetition of a delivery, and different for every other delivery. A wrong id loses events; a missing id loses none.
   * So leave out ids that are reused (Alertmanager's groupKey, GitLab's X-Gitlab-Event-UUID, WooCommerce's delivery id, a hash of the second)
   * and the ids inside batches.
   */
  readonly deliveryId?: readonly Fact[]
  /** True: the sender may also write a number of the payload as a text. So after few payloads, the type of such a field allows both. */
  readonly hasNumbersAsTexts?: true
  /** The fields of its forms whose text is JSON. */
  readonly jsonFields?: readonly string[]
  /** The path of the author in the payload. */
  readonly from?: ValuePath
  /** The path of the subject in the payload. */
  readonly subject?: ValuePath
  /** Only for a sender whose events have a place where a channel can answer them. */
  readonly answers?: AnswerFacts
}

/**
 * The sender of a delivery, and how it was recognised. If only `payload.source` names it, its event and delivery id are not read: any
 * payload may have such a field, and a wrong delivery id would lose deliveries.
 */
export type RecognisedSender = { readonly facts: SenderFacts; readonly shownBy: 'proof' | 'headers' | 'payload' }
