// Judges a history of clients and of the world around a receiver. Knows nothing of the receiver: it reads only the lines of a file.
//   npx jiti test/history/check.ts .accept/histories/crash-1.jsonl
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

/**
 * One line of a history, in the order in which the recorder saw them. `op`: one attempt of a client, which ends with `ok` (acknowledged), `fail` (refused
 * for certain) or `unknown`, or not at all. `key`: what the attempts of one request have in common. `lane`: the requests of a lane are sent one after the
 * other, and have their effects in that order. `effect`: the world saw what the request causes. `look`: a client asks for a run. `listed`: a delivery
 * in the list after the end of the load. `fault`: written before and after each kill, cut or pause.
 */
export type Entry =
  | { readonly do: 'invoke'; readonly op: number; readonly key: string; readonly lane?: string }
  | { readonly do: 'ok'; readonly op: number; readonly delivery: string; readonly run: string }
  | { readonly do: 'fail' | 'unknown'; readonly op: number; readonly why: string }
  | { readonly do: 'effect'; readonly key: string; readonly where: string }
  | { readonly do: 'look'; readonly look: number; readonly run: string }
  | { readonly do: 'seen'; readonly look: number; readonly state: string }
  | { readonly do: 'missing'; readonly look: number }
  | { readonly do: 'listed'; readonly delivery: string }
  | { readonly do: 'fault'; readonly what: string }

export type Verdict = {
  readonly acknowledged: number
  readonly unknown: number
  readonly effects: number
  /** Effects that a fault explains, because nobody had seen their run done. */
  readonly repeated: number
  /** What must not be, each with the lines of the history (from 1) that show it. */
  readonly faults: readonly string[]
}

type Line<Kind extends Entry['do']> = Extract<Entry, { do: Kind }> & { readonly line: number }

const readLines = (file: string): Entry[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    // as: the recorder wrote it
    .map((line) => JSON.parse(line) as Entry)

function groupBy<Item, Key>(items: readonly Item[], toKey: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const group = groups.get(toKey(item))
    if (group === undefined) groups.set(toKey(item), [item])
    else group.push(item)
  }
  return groups
}

export function checkFile(file: string): Verdict {
  return check(readLines(file))
}

export function check(entries: readonly Entry[]): Verdict {
  const pick = <Kind extends Entry['do']>(...kinds: Kind[]): Line<Kind>[] =>
    entries.flatMap((entry, index) =>
      // as: the kind was compared
      kinds.some((kind) => kind === entry.do) ? [{ ...entry, line: index + 1 } as Line<Kind>] : [],
    )
  const invoked = new Map(pick('invoke').map((invoke) => [invoke.op, invoke]))
  const answers = groupBy(pick('ok'), ({ op }) => invoked.get(op)?.key ?? '')
  const effects = groupBy(pick('effect'), ({ key }) => key)
  const faultsThere = findFaultPeriods(pick('fault'))
  const isExplained = (from: number, to: number) => faultsThere.some(([begin, end]) => begin < to && end > from)
  const looks = findLooks(pick('look'), pick('seen', 'missing'))
  const listed = pick('listed')

  const faults = [
    ...findLost(answers, effects),
    ...findStrangers(pick('invoke'), pick('ok', 'fail', 'unknown'), effects),
    ...findOtherAnswers(answers),
    ...findRepetitions(effects, isExplained),
    ...findRepetitionsAfterEnd(answers, effects, looks),
    ...findUnseen(answers, looks),
    ...findReordered(pick('invoke'), pick('effect')),
    ...(listed.length === 0 ? [] : findUndone(answers, looks)),
    ...(listed.length === 0 ? [] : findWronglyListed(answers, pick('unknown'), listed)),
  ]
  const all = [...effects.values()]
  return {
    acknowledged: answers.size,
    unknown: pick('unknown').length,
    effects: all.flat().length,
    repeated: all
      .flatMap((each) => [...groupBy(each, ({ where }) => where).values()].map(({ length }) => length - 1))
      .reduce((sum, each) => sum + each, 0),
    faults,
  }
}

/** From the line of each fault to that of its end. What was sent before a kill may arrive while it lasts. */
function findFaultPeriods(faults: readonly Line<'fault'>[]): [begin: number, end: number][] {
  return faults
    .filter(({ what }) => !what.endsWith(', over'))
    .map(({ what, line: begin }) => {
      const over = faults.find(({ what: later, line }) => line > begin && later === `${what}, over`)
      return [begin, over?.line ?? Number.POSITIVE_INFINITY]
    })
}

type Answers = ReadonlyMap<string, readonly Line<'ok'>[]>
type Effects = ReadonlyMap<string, readonly Line<'effect'>[]>
type Look = { readonly run: string; readonly asked: number; readonly line: number; readonly state: string | undefined }

function findLost(answers: Answers, effects: Effects): string[] {
  return [...answers].flatMap(([key, [first]]) =>
    effects.has(key) ? [] : [`lost: ${key} was acknowledged in line ${first?.line}, and had no effect`],
  )
}

/** An effect before its request, without one, or of a request whose attempts were all refused. */
function findStrangers(
  invokes: readonly Line<'invoke'>[],
  ends: readonly Line<'ok' | 'fail' | 'unknown'>[],
  effects: Effects,
): string[] {
  const attempts = groupBy(invokes, ({ key }) => key)
  const refused = new Set(ends.flatMap((end) => (end.do === 'fail' ? [end.op] : [])))
  return [...effects].flatMap(([key, [first]]) => {
    const line = first?.line ?? 0
    const before = (attempts.get(key) ?? []).filter((attempt) => attempt.line < line)
    if (before.length === 0) return [`unasked: line ${line} is an effect of ${key}, which nobody had sent`]
    const isRefused = before.every(({ op }) => refused.has(op))
    return isRefused ? [`refused: line ${line} is an effect of ${key}, which was always refused`] : []
  })
}

function findOtherAnswers(answers: Answers): string[] {
  return [...answers].flatMap(([key, [first, ...later]]) =>
    later
      .filter(({ delivery, run }) => delivery !== first?.delivery || run !== first.run)
      .map(({ line }) => `other answer: ${key} has one in line ${first?.line} and another one in line ${line}`),
  )
}

function findRepetitions(effects: Effects, isExplained: (from: number, to: number) => boolean): string[] {
  return [...effects].flatMap(([key, all]) =>
    [...groupBy(all, ({ where }) => where).values()].flatMap((each) =>
      each.flatMap(({ line, where }, index) => {
        const before = each[index - 1]
        return before === undefined || isExplained(before.line, line)
          ? []
          : [`twice: ${key} in ${where}, in lines ${before.line} and ${line}, with no fault between them`]
      }),
    ),
  )
}

/** A run that somebody saw done does nothing more, whatever fails. */
function findRepetitionsAfterEnd(answers: Answers, effects: Effects, looks: readonly Look[]): string[] {
  const doneAt = new Map(looks.filter(({ state }) => state === 'done').map(({ run, line }) => [run, line]))
  return [...answers].flatMap(([key, [first]]) => {
    const done = doneAt.get(first?.run ?? '') ?? Number.POSITIVE_INFINITY
    return (effects.get(key) ?? [])
      .filter(({ line }) => line > done)
      .map(({ line }) => `after its end: line ${line} is an effect of ${key}, whose run was done in line ${done}`)
  })
}

/** What was acknowledged or seen before a look began is there, and what was done stays done. */
function findUnseen(answers: Answers, looks: readonly Look[]): string[] {
  const known = new Map(
    [...answers.values()].flatMap(([first]) => (first === undefined ? [] : [[first.run, first.line]])),
  )
  const done = new Map<string, number>()
  return looks.flatMap(({ run, asked, line, state }) => {
    const since = known.get(run) ?? Number.POSITIVE_INFINITY
    if (state === undefined)
      return since < asked ? [`unseen: ${run}, known since line ${since}, is missing in line ${line}`] : []
    known.set(run, Math.min(since, line))
    const end = done.get(run) ?? Number.POSITIVE_INFINITY
    if (state === 'done') done.set(run, Math.min(end, line))
    else if (end < asked) return [`undone: ${run} was done in line ${end} and is ${state} in line ${line}`]
    return []
  })
}

/** At the end of the load, each acknowledged run that somebody looked at is done. */
function findUndone(answers: Answers, looks: readonly Look[]): string[] {
  const last = new Map(looks.map(({ run, state, line }) => [run, { state, line }]))
  return [...answers].flatMap(([key, [first]]) => {
    const { state = 'done', line } = last.get(first?.run ?? '') ?? {}
    return state === 'done' ? [] : [`not done: the run of ${key} is ${state} at the end, in line ${line}`]
  })
}

function findReordered(invokes: readonly Line<'invoke'>[], effects: readonly Line<'effect'>[]): string[] {
  const lanes = groupBy(
    invokes.filter(({ lane }) => lane !== undefined),
    ({ lane = '' }) => lane,
  )
  return [...lanes].flatMap(([lane, own]) => {
    const place = new Map([...new Set(own.map(({ key }) => key))].map((key, index) => [key, index]))
    let last = -1
    const first = [
      ...groupBy(
        effects.filter(({ key }) => place.has(key)),
        ({ key }) => key,
      ).values(),
    ]
    return first.flatMap(([effect]) => {
      const index = place.get(effect?.key ?? '') ?? -1
      if (index < last)
        return [`reordered: ${effect?.key} of lane ${lane} has its first effect too late, in line ${effect?.line}`]
      last = index
      return []
    })
  })
}

function findWronglyListed(
  answers: Answers,
  unknown: readonly Line<'unknown'>[],
  listed: readonly Line<'listed'>[],
): string[] {
  const count = groupBy(listed, ({ delivery }) => delivery)
  const named = new Set([...answers.values()].flatMap((each) => each.map(({ delivery }) => delivery)))
  const strangers = [...count.keys()].filter((delivery) => !named.has(delivery))
  return [
    ...[...named]
      .filter((delivery) => !count.has(delivery))
      .map((delivery) => `lost: ${delivery} was acknowledged, and is not listed`),
    ...[...count].filter(([, each]) => each.length > 1).map(([delivery]) => `twice: ${delivery} is listed twice`),
    ...(strangers.length > unknown.length
      ? [`unasked: ${strangers.join(', ')} are listed, and no answer names them`]
      : []),
  ]
}

function findLooks(asked: readonly Line<'look'>[], answers: readonly Line<'seen' | 'missing'>[]): Look[] {
  const byLook = new Map(asked.map((look) => [look.look, look]))
  return answers.flatMap((answer) => {
    const look = byLook.get(answer.look)
    const state = answer.do === 'seen' ? answer.state : undefined
    return look === undefined ? [] : [{ run: look.run, asked: look.line, line: answer.line, state }]
  })
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const verdict = checkFile(process.argv[2] ?? '')
  console.log(JSON.stringify(verdict, undefined, 2))
  process.exitCode = verdict.faults.length === 0 ? 0 : 1
}
