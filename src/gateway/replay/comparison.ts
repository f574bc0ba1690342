// Compares the outcomes of deliveries before and after an edit, and sorts the changes into classes and groups. Pure.
import type { ReplayClass } from '../../model/api/replay.ts'
import type { Retain } from '../../core/model/mapping.ts'
import type { SentValue } from '../../base/json.ts'
import type { NamedMapping } from '../../core/mapping/compile.ts'
import { type Change, type Outcome, listChanges } from './outcome.ts'

/** `recorded`: the value when the delivery arrived, if it differs from `before`. */
export type ShownChange = Change & { readonly recorded?: SentValue | undefined }

export type OutcomeComparison = {
  readonly class: ReplayClass
  readonly changes: readonly ShownChange[]
  /** Paths whose values differ between two runs of the same code, such as a time or a random number. They are not in `changes`. */
  readonly unstable: readonly string[]
  /** The differences between the recorded outcome and `before`. */
  readonly drift: readonly Change[]
}

type Outcomes = {
  readonly before: Outcome
  /** The outcomes of two runs of the edit. */
  readonly after: readonly [Outcome, Outcome]
  readonly recorded: Outcome | undefined
}

/** `findAfterId` returns the id after the edit for the id of a mapping in `before`. */
export function compare({ before, after, recorded }: Outcomes, findAfterId: (id: string) => string): OutcomeComparison {
  const [first, second] = after
  const unstable = new Set(listChanges(first, second).map(({ path }) => path))
  const isStable = ({ path }: Change) => !unstable.has(path) && !unstable.has(path.replace(/\].*/, ']'))
  const drift = recorded === undefined ? [] : listChanges(recorded, before).filter(isStable)
  const changes = unstable.has('decision') ? [] : listChanges(before, first).filter(isStable)
  const mappingId = before.mappingId === undefined ? undefined : findAfterId(before.mappingId)
  const isMoved = mappingId !== first.mappingId && !unstable.has('decision')
  const moved = { path: 'mapping', before: before.mappingId, after: first.mappingId }
  const all = isMoved ? [...changes, moved] : changes
  const old = new Map(drift.map((change) => [change.path, change.before]))
  return {
    class: classify(before, first, { changes, isMoved, isUnstable: unstable.has('decision') }),
    changes: all.map((change) => (old.has(change.path) ? { ...change, recorded: old.get(change.path) } : change)),
    unstable: [...unstable],
    drift,
  }
}

const becomes = { accept: 'now works', skip: 'now skipped', refuse: 'now refused', park: 'now parks' } as const

function classify(
  before: Outcome,
  after: Outcome,
  { changes, isMoved, isUnstable }: { changes: readonly Change[]; isMoved: boolean; isUnstable: boolean },
): ReplayClass {
  if (isUnstable) return 'same'
  if (before.decision !== after.decision) return becomes[after.decision]
  if (isMoved) return 'another mapping'
  return changes.length > 0 ? 'changed' : 'same'
}

/** The id of an unnamed mapping is its position, which changes when a mapping above it is added or removed. */
const isNamedByPosition = ({ isUnnamed }: NamedMapping): boolean => isUnnamed === true

/** Builds the `findAfterId` of `compare`: for the id of a mapping before an edit, it returns the id of the same mapping after the edit. */
export function matchIds(before: readonly NamedMapping[], after: readonly NamedMapping[]): (id: string) => string {
  const toContent = ({ id: _id, ...mapping }: NamedMapping & { retain?: Retain | undefined }) => JSON.stringify(mapping)
  const places = new Map(after.filter(isNamedByPosition).map((mapping) => [toContent(mapping), mapping.id]))
  const moved = new Map(before.filter(isNamedByPosition).map((mapping) => [mapping.id, places.get(toContent(mapping))]))
  return (id) => moved.get(id) ?? id
}

/** Deliveries of one class with changes at the same paths; those of the class `now parks` also have the same reason. `paths` have no indexes of actions. */
type Group<One> = {
  readonly class: ReplayClass
  readonly paths: readonly string[]
  /** The deliveries in the order in which they were given. The first is the example. */
  readonly members: readonly [One, ...One[]]
}

/** Groups deliveries by class and by the paths that changed. The largest group comes first. */
export function groupChanges<One extends Pick<OutcomeComparison, 'class' | 'changes'>>(
  compared: readonly One[],
): Group<One>[] {
  const groups = new Map<string, Group<One>>()
  for (const one of compared) {
    const paths = listPaths(one.changes)
    const key = JSON.stringify([one.class, paths, one.class === 'now parks' ? findReason(one.changes) : ''])
    const known = groups.get(key)
    groups.set(key, { class: one.class, paths, members: known === undefined ? [one] : [...known.members, one] })
  }
  return [...groups.values()].toSorted((one, other) => other.members.length - one.members.length)
}

/** The new outcome in one line, with its reason: `park transform-failed: …`. */
function findReason(changes: readonly Change[]): SentValue | undefined {
  return changes.find(({ path }) => path === 'decision')?.after
}

/** `actions[0].message` and `actions[1].message` are both `actions[].message`. */
export function listPaths(changes: readonly Pick<Change, 'path'>[]): string[] {
  return [...new Set(changes.map(({ path }) => path.replace(/\[\d+\]/, '[]')))].toSorted()
}
