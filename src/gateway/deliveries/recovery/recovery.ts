// Asks senders for deliveries that did not arrive: at the start, after the machine slept, every hour, and when the operator asks. Of several
// gateways, only one asks by itself.
import { takeStart } from '../../../base/text.ts'
import { sleepUnlessAborted } from '../../../base/retry.ts'
import { formatCommand } from '../../../base/shell.ts'
import type { Alerts } from '../../jobs/alerts.ts'
import { Problem } from '../../../core/model/problem.ts'
import { normalizeHookName } from '../../../core/model/mapping-rules.ts'
import type { Recover } from '../../../core/model/recover.ts'
import type { Generation } from '../../generation/generation.ts'
import { ApiDenial, type OutboxDefinition, type OutboxHost } from '../../../model/outbox.ts'
import { type ApiTools, createApiCall } from '../../../plugins/outboxes/shared/call.ts'
import type { Duty } from '../../../store/named-leases.ts'
import type { Clock, Store } from '../../../store/store.ts'
import { createIntake, type IntakeParts } from '../intake.ts'
import { recoverSource, type PassOptions, type RecoverResult, type RecoverSource, toOutboxCursor } from './pass.ts'
import { settledAfterMs } from './scan.ts'
import { createListening, type Gap, describeGap } from './listening.ts'
import { createRecoveryNotices } from './notices.ts'

type RecoveryParts = Omit<IntakeParts, 'store'> & {
  readonly generation: () => Generation
  readonly outboxes: () => readonly OutboxDefinition[]
  readonly store: Pick<Store, 'appendAll' | 'openDeliveries' | 'cursor' | 'findAnswer'>
  /** Only the gateway with this duty recovers by itself. */
  readonly duty: Duty
  /** Queues a message to the operator. Resolves to false if it could not be queued now; the next pass tries again. */
  readonly alert: Alerts['reportRecovery']
  readonly clock: Clock
  readonly newId: () => string
  readonly pause?: ApiTools['pause']
  /** The time between two checks of the clock. Tests shorten it. */
  readonly tickMs?: number
}

/** `name`: the name of a hook or a sender; default: all. */
type RecoverRequest = PassOptions & { readonly name?: string | undefined }

/** The result of a pass over the outbox of one sender. */
export type RecoverReport = RecoverResult & {
  readonly sender: string
  readonly hook: string
  /** As in `Outbox`. */
  readonly remembers: boolean
}

type OpenSource = RecoverSource & { readonly turnsOn: boolean }

export type Recovery = {
  /** Called when the configuration or the duty has changed. */
  apply(): void
  /** Resolves when the pass has ended. Passes run one after the other. Throws `not-found` if no mapping with `recover` has this hook or sender. */
  run(request: RecoverRequest): Promise<RecoverReport[]>
  stop(): Promise<void>
}

const hourMs = 3_600_000
/** The waits after failed passes. The first waits are short, because a network that is down is often up again soon. */
const retryMs = [60_000, 120_000, 300_000, 900_000]
const none: RecoverResult = {
  missing: 0,
  recovered: 0,
  failed: 0,
  gone: 0,
  refused: 0,
  begins: false,
  leavesNew: false,
  problem: undefined,
  isDenied: false,
}

export function createRecovery(parts: RecoveryParts): Recovery {
  const {
    generation,
    outboxes: listOutboxes,
    store,
    duty,
    clock,
    log,
    pause = sleepUnlessAborted,
    tickMs = 30_000,
  } = parts
  const intake = createIntake(parts)
  const notices = createRecoveryNotices(parts)
  const listening = createListening({ store, clock })
  const stopping = new AbortController()
  let passes: Promise<unknown> = Promise.resolve()
  /** The sections with `recover` that were applied last, as JSON: `[]` without the duty, empty before the first call of `apply`. */
  let applied = ''
  /** The time of the next automatic pass. */
  let dueAt = Number.POSITIVE_INFINITY
  let failures = 0
  /** Whether the next automatic pass only takes what the last one left out, because it was too new. */
  let isSecond = false
  let isTicking = false
  const timer = setInterval(() => void tick(), tickMs).unref()

  function apply(): void {
    const wanted = duty.isHeld() ? JSON.stringify(listSections(generation())) : '[]'
    if (wanted === applied || stopping.signal.aborted) return
    applied = wanted
    dueAt = wanted === '[]' ? Number.POSITIVE_INFINITY : 0
    void tick()
  }

  async function tick(): Promise<void> {
    if (isTicking || applied === '[]' || applied === '' || !duty.isHeld() || stopping.signal.aborted) return
    isTicking = true
    try {
      const gap = await listening.note()
      // the gateway was not running, or its machine slept
      if (gap !== undefined || clock() >= dueAt) await runDue(gap)
    } catch (error) {
      if (!stopping.signal.aborted)
        log.warn({ err: error }, 'the deliveries that did not arrive could not be fetched; the gateway tries again')
    } finally {
      isTicking = false
    }
  }

  async function runDue(gap: Gap | undefined): Promise<void> {
    dueAt = clock() + hourMs
    const reports = await run({})
    const hasFailed = reports.some(({ problem, failed }) => problem !== undefined || failed > 0)
    failures = hasFailed ? failures + 1 : 0
    // one more pass and no third one: the attempts of a sender whose requests fail all the time would ask for a pass each minute
    isSecond = !hasFailed && !isSecond && reports.some(({ leavesNew }) => leavesNew)
    if (isSecond) dueAt = clock() + settledAfterMs
    if (hasFailed) dueAt = clock() + (retryMs[Math.min(failures, retryMs.length) - 1] ?? hourMs)
    logReports(reports, gap)
  }

  function run(request: RecoverRequest): Promise<RecoverReport[]> {
    const pass = passes.then(() => runAll(request))
    passes = pass.catch(() => undefined)
    return pass
  }

  async function runAll({ name, ...options }: RecoverRequest): Promise<RecoverReport[]> {
    const sources = await openSources()
    const wanted = sources.filter(({ path, sender }) => name === undefined || name === path || name === sender)
    if (wanted.length === 0 && name !== undefined) {
      throw new Problem('not-found', `No mapping with recover has the hook or the sender "${takeStart(name, 60)}".`)
    }
    const reports: RecoverReport[] = []
    for (const source of wanted) {
      if (stopping.signal.aborted) break
      reports.push(await runOne(source, options))
    }
    return reports
  }

  async function runOne(source: OpenSource, options: PassOptions): Promise<RecoverReport> {
    const { sender, path: hook } = source
    /** Why the webhook could not be turned on. */
    let offProblem: Problem | undefined
    const { remembers } = source.outbox
    let result: RecoverResult = none
    try {
      if (options.isDryRun !== true) offProblem = await checkHook(source)
      if (remembers) result = await recoverSource(source, { ...parts, intake }, options)
    } catch (error) {
      result = toFailedResult(error, { sender, hook })
    }
    if (options.isDryRun !== true && !stopping.signal.aborted) await noteResult(source, result, offProblem)
    return { sender, hook, remembers, ...result }
  }

  function toFailedResult(error: unknown, fields: object): RecoverResult {
    if (stopping.signal.aborted) return { ...none, problem: 'The gateway stops.' }
    if (error instanceof Problem) return { ...none, problem: error.message, isDenied: error instanceof ApiDenial }
    log.error({ err: error, ...fields }, 'a pass over the deliveries of a sender failed')
    return { ...none, problem: 'The recovery failed inside the gateway. The log of the gateway shows why.' }
  }

  async function noteResult(source: OpenSource, result: RecoverResult, offProblem?: Problem): Promise<void> {
    const { problem = offProblem && `The webhook could not be turned on: ${offProblem.message}` } = result
    const isDenied = result.problem === undefined ? offProblem instanceof ApiDenial : result.isDenied
    await notices.notePass(source, { ...result, problem, isDenied }).catch((error: unknown) => {
      log.warn({ err: error }, 'the outcome of a recovery could not be noted, so the operator is told later')
    })
  }

  /** Turns the webhook on again, if the configuration allows it. Returns the problem if that fails. */
  async function checkHook(source: OpenSource): Promise<Problem | undefined> {
    const { sender, path, outbox, turnsOn } = source
    const state = await outbox.state()
    await notices.noteHook(source, state)
    if (state.isOn || !turnsOn) return undefined
    try {
      await outbox.turnOn()
      log.warn({ sender, hook: path }, `The webhook of ${sender} for the hook "${path}" was turned on again.`)
      return undefined
    } catch (error) {
      // this pass still recovers the deliveries that failed
      if (!(error instanceof Problem)) throw error
      log.error(
        { sender, hook: path },
        `The webhook of ${sender} for the hook "${path}" could not be turned on: ${error.message}`,
      )
      return error
    }
  }

  async function openSources(): Promise<OpenSource[]> {
    const onWait = (host: string, ms: number) =>
      log.info(
        { host, seconds: Math.ceil(ms / 1_000) },
        `${host} has a limit of requests; the gateway goes on when it ends`,
      )
    const tools: ApiTools = { clock, pause, signal: stopping.signal, onWait }
    const host: OutboxHost = { clock, openApi: (parts) => createApiCall(parts, tools) }
    const sources = new Map<string, OpenSource>()
    const { mappings } = generation()
    for (const { settings, path, id } of listSections(generation())) {
      const mapping = mappings.find((each) => each.id === id)
      const { sender, turnOn = false, ...options } = settings
      // a plugin that does not load brings none
      const definition = listOutboxes().find(({ name }) => name === sender)
      const outbox = definition?.create(definition.options.parse(options), host)
      const source = mapping && outbox && { sender, path, mapping, outbox, turnsOn: turnOn }
      // several mappings of a hook may name the same webhook
      if (source !== undefined && !sources.has(toOutboxCursor(source))) sources.set(toOutboxCursor(source), source)
    }
    return [...sources.values()]
  }

  /** Logs the deliveries that were missed before a start or in the last hour. A pass that found none is logged only after a gap. */
  function logReports(reports: readonly RecoverReport[], gap: Gap | undefined): void {
    const shown = reports.filter(
      ({ problem, missing, begins }) => gap !== undefined || problem !== undefined || missing > 0 || begins,
    )
    if (shown.length === 0) return
    const text = [...(gap === undefined ? [] : [describeGap(gap)]), ...shown.map(describeReport)].join('; ')
    const isFailed = shown.some(({ problem, missing, recovered }) => problem !== undefined || recovered < missing)
    log[isFailed ? 'warn' : 'info'](
      { recovered: shown.map(({ sender, hook, missing, recovered }) => ({ sender, hook, missing, recovered })) },
      text,
    )
  }

  return {
    apply,
    run,
    async stop() {
      clearInterval(timer)
      stopping.abort()
      await passes
      if (applied !== '[]' && applied !== '' && duty.isHeld()) await listening.end().catch(() => undefined)
    },
  }
}

/** Each mapping with `recover`, by its id and its hook. */
function listSections({ mappings, config }: Generation): { settings: Recover; path: string; id: string }[] {
  if (!config.hooks.enabled) return []
  return mappings.flatMap(({ id, mapping: { recover: settings, match } }) =>
    settings === undefined ? [] : [{ settings, path: normalizeHookName(match.path ?? ''), id }],
  )
}

/** Such as `github: 14 of 14 recovered`. */
export function describeReport({
  sender,
  remembers,
  begins,
  missing,
  recovered,
  failed,
  gone,
  refused,
  problem,
}: Omit<RecoverReport, 'isDenied' | 'leavesNew'>): string {
  if (problem !== undefined) return `${sender}: ${recovered} recovered, then: ${problem}`
  if (!remembers) return `${sender}: it keeps no list of its deliveries; its subscriptions were checked`
  if (begins)
    return `${sender}: recover begins now; "${formatCommand`hookloom recover ${sender} --since 1d`}" takes what was missed before`
  const notes = [
    ...(failed === 0 ? [] : [`${failed} tried again later`]),
    ...(gone === 0 ? [] : [`${gone} no longer at ${sender}`]),
    ...(refused === 0 ? [] : [`${refused} refused by the hook`]),
  ]
  return `${sender}: ${recovered} of ${missing} recovered${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`
}
