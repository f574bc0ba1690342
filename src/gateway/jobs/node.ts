// One of several gateways on a store: its duties for all of them, and the signals of the others.
import type { Jobs } from './jobs.ts'
import type { Log } from '../../base/log.ts'
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { NodeInfo } from '../../store/owners.ts'
import { createNamedLeases, type Duty, type LeaseTimes, type NamedLeases } from '../../store/named-leases.ts'
import type { Store } from '../../store/store.ts'

const joinEveryMs = 10_000

/** The parts that act when this gateway gets or loses a duty, or when another gateway sends a signal. */
type NodeActors = {
  readonly jobs: Pick<Jobs, 'lookForJobs' | 'lookForWakes' | 'reloadSchedules'>
  readonly mailbox: { apply(): void }
  readonly drain: { look(): void }
  readonly recovery: { apply(): void }
  readonly runners: { apply(): void }
}

type Node = {
  readonly id: string
  readonly leases: NamedLeases
  /**
   * Duties that one gateway performs: the heartbeats of the intervals, the watched mailbox, the deletion of old deliveries, the recovery of missed
   * deliveries, the judgement of the senders, and the passes of the runners.
   */
  readonly duties: Readonly<Record<'heartbeats' | 'mailbox' | 'retention' | 'recovery' | 'senders' | 'runners', Duty>>
  /** Writes the address, the version and the live generation of this gateway for the others. Resolves when the write has succeeded or failed. */
  join(): Promise<void>
  start(actors: NodeActors): void
  stop(): Promise<void>
}

export function createNode(parts: {
  store: Store
  log: Log
  leaseTimes?: LeaseTimes | undefined
  info: () => Omit<NodeInfo, 'id'>
}): Node {
  const { store, log, info, leaseTimes: times } = parts
  const leases = createNamedLeases({ store, log, times })
  let actors: NodeActors | undefined
  let unsubscribe = () => {}
  const id = `${hostname()
    .replaceAll(/[^\w.-]/g, '')
    .slice(0, 40)}-${randomBytes(3).toString('hex')}`
  let joining: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let stopping: Promise<void> | undefined

  /** The writes run one after the other. A write that fails is repeated ten seconds later. */
  function join(): Promise<void> {
    joining = joining.then(() => store.join({ id, ...info() }).catch(() => undefined))
    return joining
  }

  return {
    id,
    leases,
    duties: {
      heartbeats: leases.duty('heartbeats', () => actors?.jobs.reloadSchedules()),
      mailbox: leases.duty('mailbox', () => actors?.mailbox.apply()),
      retention: leases.duty('retention', () => {}),
      recovery: leases.duty('recovery', () => actors?.recovery.apply()),
      senders: leases.duty('senders', () => {}),
      runners: leases.duty('runners', () => actors?.runners.apply()),
    },
    join,
    start(given) {
      actors = given
      const { jobs, mailbox, drain, recovery, runners } = given
      timer = setInterval(() => void join(), joinEveryMs).unref()
      // the duties may have been acquired before the start
      jobs.reloadSchedules()
      mailbox.apply()
      recovery.apply()
      runners.apply()
      unsubscribe = store.subscribe((signal) => {
        if (signal === 'jobs') jobs.lookForJobs()
        if (signal === 'waiting') drain.look()
        if (signal === 'wakes') void jobs.lookForWakes()
      })
    },
    stop: () => (stopping ??= stop()),
  }

  async function stop(): Promise<void> {
    unsubscribe()
    clearInterval(timer)
    await joining
    await store.leave(id).catch(() => undefined)
    await leases.stop()
  }
}
