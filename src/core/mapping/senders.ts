// The senders that a generation knows, as a table that recognises the sender of a request.
import type { Delivery } from '../model/delivery.ts'
import { Problem } from '../model/problem.ts'
import type { Mark, RecognisedSender, SenderFacts } from '../model/sender.ts'

type Headers = Delivery['headers']

export type SenderRecognition = {
  /** The hash of their code; empty if all are built in. */
  readonly hash: string
  /** The sender with this name. */
  readonly find: (name: string | undefined) => SenderFacts | undefined
  /**
   * The sender of a delivery: the one that a proof names, else the one that the headers show, else the one that the payload names. No other
   * function decides this, and each delivery carries the result. Undefined for a sender that is not in the list. Headers can be forged, so only
   * `verifiedBy` is a proof.
   */
  readonly recognise: (given: {
    readonly verifiedBy?: string | undefined
    readonly headers: Headers
    readonly namedSource?: string | undefined
  }) => RecognisedSender | undefined
}

/** The order of the rows is the priority of detection. Throws `config-invalid` if two senders have the same name. */
export function recogniseSenders(rows: readonly SenderFacts[], hash: string): SenderRecognition {
  const byName = indexByName(rows, ({ name }) => name, 'senders')
  const byHeader = indexMarks(rows)
  const find: SenderRecognition['find'] = (name) => (name === undefined ? undefined : byName.get(name))

  /** The sender that the headers show; the first one of the list if they match several. */
  function findMarked(headers: Headers): SenderFacts | undefined {
    let best: number | undefined
    for (const name of Object.keys(headers)) {
      const known = byHeader.get(name)
      if (known === undefined || known.like?.test(headers[name] ?? '') === false) continue
      for (const { mark, rank } of known.marks) {
        if ((best === undefined || rank < best) && isMarked(mark, headers)) best = rank
      }
    }
    return best === undefined ? undefined : rows[best]
  }

  return {
    hash,
    find,
    recognise({ verifiedBy, headers, namedSource }) {
      const proved = find(verifiedBy)
      if (proved !== undefined) return { facts: proved, shownBy: 'proof' }
      const shown = findMarked(headers)
      if (shown !== undefined) return { facts: shown, shownBy: 'headers' }
      const named = find(namedSource)
      return named && { facts: named, shownBy: 'payload' }
    },
  }
}

/** Throws `config-invalid` for a name that two rows have. `what`: the plural of the rows. */
export function indexByName<Row>(rows: readonly Row[], readName: (row: Row) => string, what: string): Map<string, Row> {
  const index = new Map<string, Row>()
  for (const row of rows) {
    const name = readName(row)
    if (index.has(name)) throw buildTwiceProblem(what, name)
    index.set(name, row)
  }
  return index
}

export function buildTwiceProblem(what: string, name: string): Problem {
  return new Problem('config-invalid', `Two ${what} have the name "${name}": rename the one of the plugin.`)
}

function isMarked(mark: Mark, headers: Headers): boolean {
  if (mark.beside !== undefined && !Object.hasOwn(headers, mark.beside)) return false
  // own properties only: a mark may have any name
  return (
    mark.like === undefined || mark.like.test(Object.hasOwn(headers, mark.header) ? (headers[mark.header] ?? '') : '')
  )
}

type MarkedHeader = {
  readonly marks: readonly { readonly mark: Mark; readonly rank: number }[]
  /**
   * One pattern for the values of all its marks, in place of a test for each sender. Undefined if a mark takes any value, or if the patterns have
   * different flags.
   */
  readonly like: RegExp | undefined
}

/** The marks by header name: the lookup takes one step for each header, not one for each sender. */
function indexMarks(rows: readonly SenderFacts[]): ReadonlyMap<string, MarkedHeader> {
  const index = new Map<string, { mark: Mark; rank: number }[]>()
  for (const [rank, { marks = [] }] of rows.entries()) {
    for (const mark of marks) {
      const found = index.get(mark.header)
      if (found === undefined) index.set(mark.header, [{ mark, rank }])
      else found.push({ mark, rank })
    }
  }
  return new Map(
    [...index].map(([name, marks]) => [name, { marks, like: toUnion(marks.map(({ mark }) => mark.like)) }]),
  )
}

function toUnion(likes: readonly (RegExp | undefined)[]): RegExp | undefined {
  const [flags, ...others] = new Set(likes.map((like) => like?.flags))
  if (flags === undefined || others.length > 0) return undefined
  return new RegExp(likes.map((like) => `(?:${like?.source})`).join('|'), flags)
}
