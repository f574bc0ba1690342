// The worker's side: turns bundles into functions, and calls into outcomes. If a transform damages its thread, the worker reports it to the
// main thread and returns the calls that have not begun.
import type { AsyncLocalStorage } from 'node:async_hooks'
import { Problem, toProblemRecord } from '../../model/problem.ts'
import { buildThrownReport } from '../modules/thrown.ts'
import { type CallOutcome, startCall, toFailedOutcome } from './call.ts'
import type { CoverageProbe } from './coverage.ts'
import type { OpenCall } from './guard.ts'
import type { Intrinsics } from './intrinsics.ts'
import { stateIndex, type CallPost, type FromWorker, type ThreadExit, type ToWorker } from './messages.ts'
import { createOutcomeBatch } from './outcome-batch.ts'
import { listSchemaPaths } from './schema-paths.ts'
import { createLoadedBundles, type LoadedBundle, findCallable } from './loaded-bundles.ts'

/** Milliseconds between two checks of the memory while calls are in flight. */
const memoryCheckMs = 50

type StateAnswer = Extract<ToWorker, { kind: 'state' }>

type ThreadServer = {
  receive(message: ToWorker): void
  /** Reports that code is about to end the thread. */
  exit(how: string): void
  /** Reports an uncaught exception. */
  uncaught(thrown: unknown): void
}

// captured, because transforms may replace the globals
const { parse } = JSON
const repeat = setInterval
const stopRepeating = clearInterval
const { store, load } = Atomics
const toBytes = Buffer.from.bind(Buffer)
const Bytes = Uint8Array
const { slice } = String.prototype

export function createThreadServer({
  post,
  sharedState,
  calls,
  intrinsics,
  memory,
  coverage,
}: {
  post: (message: FromWorker) => void
  sharedState: Int32Array
  calls: AsyncLocalStorage<OpenCall>
  intrinsics: Intrinsics
  memory: { isOver(): boolean }
  /** If it is set, calls must come one at a time, so that they can be distinguished. */
  coverage: CoverageProbe | undefined
}): ThreadServer {
  const bundles = createLoadedBundles(intrinsics)
  const outcomes = createOutcomeBatch(post)
  const open = new Set<OpenCall>()
  const questions = new Map<string, (answer: StateAnswer) => void>()
  let isLeaving = false
  let memoryTimer: NodeJS.Timeout | undefined

  function leave(leaving: Omit<ThreadExit, 'kind'>): void {
    if (isLeaving && leaving.why !== 'exit') return
    isLeaving = true
    outcomes.flush()
    post({ kind: 'leaving', ...leaving })
  }

  /** Checks only while calls are open, so that an idle worker sleeps. */
  function watchMemory(): void {
    memoryTimer ??= repeat(() => {
      if (open.size > 0) return checkMemory()
      stopRepeating(memoryTimer)
      memoryTimer = undefined
    }, memoryCheckMs)
  }

  function checkMemory(): void {
    if (memory.isOver()) leave({ why: 'memory', what: '', seq: undefined, bundle: undefined })
  }

  function checkGlobals(call?: OpenCall): void {
    const what = isLeaving ? undefined : intrinsics.changed()
    if (what !== undefined) leave({ why: 'globals', what, seq: call?.seq, bundle: call?.bundle })
  }

  async function check(bundle: number, exports: readonly (string | undefined)[]): Promise<void> {
    const loaded = await bundles.get(bundle)
    const found = exports.map((name) => findCallable(loaded, name))
    const problems = found.map((each) => (each instanceof Problem ? toProblemRecord(each) : undefined))
    const reads = found.map((each) => (each instanceof Problem ? [] : listSchemaPaths(each.call)))
    post({ kind: 'checked', bundle, problems, reads, changed: bundles.changedBy(bundle) })
  }

  function runBatch({ calls, bodies }: Extract<ToWorker, { kind: 'calls' }>): void {
    // as: thread.ts writes the text
    const posts = parse(calls) as CallPost[]
    let at = 0
    // timers and promises may have run since the last call
    checkGlobals()
    outcomes.startBatch()
    for (const post of posts) {
      outcomes.flushIfDue()
      begin(post, takeBody(bodies, at, post))
      at += post.size
    }
    outcomes.flush()
  }

  function begin(post: CallPost, body: Uint8Array | string): void {
    const { seq, bundle } = post
    if (isLeaving) return outcomes.addUnrun(seq)
    // first writes `begun`, then reads `recalled`; the main thread does the opposite: see `stateIndex`
    store(sharedState, stateIndex.begun, seq)
    if (load(sharedState, stateIndex.recalled) >= seq) return outcomes.addUnrun(seq)
    const call: OpenCall = { seq, bundle, log: [], isOpen: true }
    open.add(call)
    const loaded = bundles.get(bundle)
    if (loaded instanceof Promise) void loaded.then((ready) => run(ready, call, post, body))
    else run(loaded, call, post, body)
  }

  function run(loaded: LoadedBundle | Problem, call: OpenCall, post: CallPost, body: Uint8Array | string): void {
    const callable = findCallable(loaded, post.export)
    if (callable instanceof Problem) return finish(call, toFailedOutcome(callable))
    store(sharedState, stateIndex.running, call.seq)
    const { head, syntax, serves, hasState } = post
    const readState = hasState ? (key: string) => askState(call.seq, key) : undefined
    const outcome = calls.run(call, startCall, callable, { head, syntax, serves, readState, body }, call.log)
    store(sharedState, stateIndex.running, 0)
    if (outcome instanceof Promise) {
      watchMemory()
      checkGlobals(call)
      void outcome.then((settled) => finish(call, settled))
    } else finish(call, outcome)
  }

  /** A call reads each key once, so the number of the call and the key together identify its question. */
  function askState(seq: number, key: string): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      questions.set(`${seq} ${key}`, ({ json, isRead }) => {
        if (isRead) resolve(json)
        else reject(new Error('state.get: the store could not be read.'))
      })
      post({ kind: 'state', seq, key })
    })
  }

  function answerState(message: StateAnswer): void {
    const name = `${message.seq} ${message.key}`
    const answer = questions.get(name)
    questions.delete(name)
    answer?.(message)
  }

  function finish(call: OpenCall, outcome: CallOutcome): void {
    if (!call.isOpen) return
    call.isOpen = false
    open.delete(call)
    if (coverage !== undefined) post({ kind: 'covered', bundle: call.bundle, parts: coverage.take(call.bundle) })
    outcomes.add(call.seq, outcome)
    checkGlobals(call)
    checkMemory()
  }

  return {
    receive: (message) => {
      if (message.kind === 'calls') runBatch(message)
      else if (message.kind === 'load') {
        checkGlobals()
        coverage?.add(message.bundle)
        store(sharedState, stateIndex.loading, message.bundle.id)
        bundles.load(message.bundle, message.timeoutMs)
        store(sharedState, stateIndex.loading, 0)
      } else if (message.kind === 'check') void check(message.bundle, message.exports)
      else if (message.kind === 'ping') post({ kind: 'pong' })
      else if (message.kind === 'state') answerState(message)
      else {
        const what = bundles.unload(message.bundle)
        // the change that the bundle made is still in effect
        if (what !== undefined) leave({ why: 'globals', what, seq: undefined, bundle: message.bundle })
      }
    },
    exit: (how) => {
      const call = calls.getStore()
      leave({ why: 'exit', what: how, seq: call?.seq, bundle: call?.bundle })
    },
    uncaught: (thrown) => {
      const call = calls.getStore()
      const loaded = call && bundles.get(call.bundle)
      const evaluated = loaded !== undefined && 'evaluated' in loaded ? loaded.evaluated : undefined
      const { what, at, frame } = buildThrownReport(thrown, evaluated?.locate ?? (() => undefined))
      const label = evaluated?.label ?? 'A transform'
      const detail = `${label} threw ${what}${at} outside the call: in a timer, or in a promise without await.`
      const problem = toProblemRecord(new Problem('transform-failed', detail, { frame }))
      leave({ why: 'uncaught', what, problem, seq: call?.seq, bundle: call?.bundle })
    },
  }
}

function takeBody(bodies: ArrayBuffer | string, at: number, { size, isAscii }: CallPost): Uint8Array | string {
  if (typeof bodies !== 'string') return new Bytes(bodies, at, size)
  const text = slice.call(bodies, at, at + size)
  return isAscii ? text : toBytes(text, 'latin1')
}
