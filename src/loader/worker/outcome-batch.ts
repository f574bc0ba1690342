// Outcomes on their way to the main thread: those of one turn of the event loop, or of a millisecond of calls back to back, in one message.
import type { CallOutcome } from './call.ts'
import type { FromWorker } from './messages.ts'

/** Outcomes wait for one another this long at the most while calls run back to back. */
const maxWaitMs = 1

export type OutcomeBatch = {
  add(seq: number, outcome: CallOutcome): void
  /** The call was not begun, and never will be here. */
  addUnrun(seq: number): void
  /** A batch of calls begins: what ends meanwhile waits for `flush`, or for `flushIfDue`. */
  hold(): void
  /** Sends what has waited long enough. */
  flushIfDue(): void
  flush(): void
}

// captured: what runs here may replace the globals
const { stringify } = JSON
const now = performance.now.bind(performance)
const later = setImmediate

export function createOutcomeBatch(post: (message: FromWorker) => void): OutcomeBatch {
  /** As JSON, but for the brackets. */
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
    hold: () => {
      willFlush = true
    },
    flushIfDue: () => {
      if (outcomes !== '' && now() - sentAt > maxWaitMs) send()
    },
    flush,
  }
}

/** Of a text alone JSON.stringify makes a text without asking anybody: a `toJSON` may have been put where every object has it. */
function toText(outcome: CallOutcome): string {
  const text = outcome.kind === 'returned' ? `{"kind":"returned","value":${outcome.json}` : toProblemText(outcome)
  let log = ''
  for (let index = 0; index < outcome.log.length; index += 1) {
    log += `${index === 0 ? '' : ','}${stringify(outcome.log[index] ?? '')}`
  }
  return `${text},"log":[${log}]}`
}

function toProblemText({ kind, problem: { code, detail, frame } }: Exclude<CallOutcome, { kind: 'returned' }>): string {
  const shown = frame === undefined ? '' : `,"frame":${stringify(frame)}`
  return `{"kind":"${kind}","problem":{"code":"${code}","detail":${stringify(detail)}${shown}}`
}
