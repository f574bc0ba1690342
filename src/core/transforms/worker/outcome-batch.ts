// Sends outcomes to the main thread. The outcomes of one turn of the event loop, or of one millisecond of consecutive calls, are sent as
// one message.
import type { StateWrite } from '../../model/transform-state.ts'
import type { CallOutcome } from './call.ts'
import type { FromWorker } from './messages.ts'

/** The longest time that an outcome waits for further outcomes while calls run one after the other. */
const maxWaitMs = 1

type OutcomeBatch = {
  add(seq: number, outcome: CallOutcome): void
  /** The call did not begin, and will not begin in this thread. */
  addUnrun(seq: number): void
  /** Call it when a batch of calls begins. From then on, outcomes wait for `flush` or `flushIfDue`. */
  startBatch(): void
  /** Sends the outcomes if none were sent for `maxWaitMs`. */
  flushIfDue(): void
  flush(): void
}

// captured, because transforms may replace the globals
const { stringify } = JSON
const now = performance.now.bind(performance)
const later = setImmediate

export function createOutcomeBatch(post: (message: FromWorker) => void): OutcomeBatch {
  /** The outcomes as JSON without the brackets. */
  let outcomes = ''
  let seqs: number[] = []
  let sentAt = 0
  let willFlush = false

  function send(): void {
    sentAt = now()
    if (seqs.length > 0) post({ kind: 'unrun', seqs })
    if (outcomes !== '') post({ kind: 'outcomes', outcomes: `[${outcomes}]` })
    seqs = []
    outcomes = ''
  }

  function flush(): void {
    willFlush = false
    send()
  }

  return {
    add: (seq, outcome) => {
      outcomes += `${outcomes === '' ? '' : ','}[${seq},${toText(outcome)}]`
      if (willFlush) return
      willFlush = true
      later(flush)
    },
    addUnrun: (seq) => void seqs.push(seq),
    startBatch: () => {
      willFlush = true
    },
    flushIfDue: () => {
      if (outcomes !== '' && now() - sentAt > maxWaitMs) send()
    },
    flush,
  }
}

/** Gives only texts to JSON.stringify: for another value, it may run a `toJSON` that a transform has added to all objects. */
function toText(outcome: CallOutcome): string {
  const text = outcome.kind === 'returned' ? `{"kind":"returned","value":${outcome.json}` : toProblemText(outcome)
  let log = ''
  for (let index = 0; index < outcome.log.length; index += 1) {
    log += `${index === 0 ? '' : ','}${stringify(outcome.log[index] ?? '')}`
  }
  const state = outcome.kind === 'returned' && outcome.state.length > 0 ? `,"state":${toStateText(outcome.state)}` : ''
  return `${text},"log":[${log}]${state}}`
}

function toStateText(writes: readonly StateWrite[]): string {
  let text = ''
  for (let index = 0; index < writes.length; index += 1) {
    const [key = '', json = null, forMs = 0] = writes[index] ?? []
    text += `${index === 0 ? '' : ','}[${stringify(key)},${json === null ? 'null' : stringify(json)},${forMs}]`
  }
  return `[${text}]`
}

function toProblemText({ kind, problem: { code, detail, frame } }: Exclude<CallOutcome, { kind: 'returned' }>): string {
  const shown = frame === undefined ? '' : `,"frame":${stringify(frame)}`
  return `{"kind":"${kind}","problem":{"code":"${code}","detail":${stringify(detail)}${shown}}`
}
