// What a simulation knows of its gateways, and the promises that each call of the store, each turn and each post is compared with.
import type { PlannedAction } from '../../src/core/model/action.ts'
import type { ClaimedJob } from '../../src/model/job.ts'
import type { RunRequest } from '../../src/model/runner.ts'
import type { NewDelivery } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'

/** A gateway of the simulation. After its death, none of its calls reaches the store, and no answer reaches it. `cutUntil`: until then, its calls wait. */
export type Node = { readonly name: string; isDead: boolean; cutUntil: number }

type StoreCall = keyof {
  [Name in keyof Store as Store[Name] extends (...args: never[]) => unknown ? Name : never]: true
}
type CallOf<Name extends StoreCall> = Parameters<Store[Name]>

type Call = {
  readonly name: string
  readonly args: readonly unknown[]
  readonly answer: unknown
  readonly wasHeld: boolean
}
type Lease = { readonly node: Node; readonly fence: number; readonly until: number }
type SentRequest = { readonly key: string; readonly planned: PlannedAction }

/** `store`: without faults. */
export function createWorld(store: Store) {
  const violations: string[] = []
  /** The requests that were answered with 200, by their dedupe keys. */
  const acknowledged = new Set<string>()
  /** The request of each stored job, and the deliveries that each request became. */
  const requests = new Map<string, SentRequest>()
  const deliveries = new Map<string, string[]>()
  const leases = new Map<string, Lease>()
  /** The runs of each lane in arrival order. */
  const lanes = new Map<string, string[]>()
  /** The runs whose reply is recorded, and those that an operator ended. */
  const recorded = new Set<string>()
  const ended = new Set<string>()
  /** The gateway whose mark `sending` is stored, by job. */
  const marked = new Map<string, Node>()
  const prompts = new Map<string, string>()
  const texts = new Map<number, string>()
  const consumed = new Map<number, string>()
  /** The times that a post arrived, by its nonce, and the reasons for which a post of a job may arrive once more. */
  const arrived = new Map<string, { readonly jobId: string; copies: number }>()
  const doubts = new Map<string, number>()
  const holds = new Map<string, number>()
  const counts = { acknowledged: 0, turns: 0, posts: 0, claims: 0, copies: 0 }

  const promise = (isKept: boolean, broken: string) => void (isKept || violations.push(broken))
  /** A message of this job may arrive once more. */
  const noteDoubt = (jobId: string) => void doubts.set(jobId, (doubts.get(jobId) ?? 0) + 1)
  const isLive = (lease: Lease | undefined): lease is Lease => lease !== undefined && lease.until > Date.now()
  const isHeld = () => (holds.get('agent:main') ?? 0) > Date.now()

  async function noteClaim(node: Node, job: ClaimedJob, leaseMs: number, wasHeld: boolean): Promise<void> {
    const { id, fence, planned } = job
    counts.claims += 1
    promise(!isLive(leases.get(id)), `${id} was claimed while another gateway had its lease`)
    promise(!ended.has(id), `${id} was claimed after an operator had ended it`)
    leases.set(id, { node, fence, until: Date.now() + leaseMs })
    // its last owner began to post, and never reported what came of it
    if (marked.delete(id)) noteDoubt(id)
    if (!requests.has(id)) return
    promise(!(wasHeld && isHeld()), `${id} was claimed during a pause of its agent`)
    if (planned.kind !== 'agent' || planned.sharesSession || job.steps.some(({ name }) => name === 'run')) return
    const lane = lanes.get(planned.sessionKey) ?? []
    for (const earlier of lane.slice(0, lane.indexOf(id))) {
      const { state = 'dropped', steps = [] } = (await store.job(earlier)) ?? {}
      const isOver = steps.some(({ name }) => name === 'run') || !['queued', 'running'].includes(state)
      promise(isOver, `${id} was claimed before ${earlier} of its lane had run`)
    }
    lanes.set(planned.sessionKey, lane.slice(lane.indexOf(id)))
  }

  function noteReport(node: Node, [{ id, fence }, report]: CallOf<'report'>): void {
    const lease = leases.get(id)
    // a report that ended its job may be repeated after its lease is forgotten
    promise(lease === undefined || lease.fence === fence, `a report of ${id} was written under a fence that is over`)
    if (report.outcome !== undefined) {
      leases.delete(id)
      marked.delete(id)
    } else if (lease !== undefined) leases.set(id, { ...lease, until: Date.now() + (report.leaseMs ?? 0) })
    if (report.posts?.some(({ state }) => state === 'sending')) marked.set(id, node)
    if (report.steps?.some(({ name }) => name === 'run')) recorded.add(id)
    for (const { id: event } of report.consumed ?? []) {
      const other = consumed.get(event) ?? id
      promise(other === id, `the event ${event} was consumed by ${other} and by ${id}`)
      const isShown = prompts.get(`${node.name} ${id}`)?.includes(texts.get(event) ?? '?') === true
      promise(isShown, `the event ${event} was consumed by ${id}, which did not show it`)
      consumed.set(event, id)
    }
  }

  return {
    violations,
    counts,
    acknowledged,
    requests,
    consumed,
    isHeld,
    /** Called after the store has done what `node` asked for. `wasHeld`: whether the agent was paused when the call came. */
    async note(node: Node, { name, args, answer, wasHeld }: Call): Promise<void> {
      // as: the name says which call it was
      if (name === 'claim') {
        const [{ leaseMs }] = args as CallOf<'claim'>
        for (const job of answer as ClaimedJob[]) await noteClaim(node, job, leaseMs, wasHeld)
      }
      if (name === 'report' && answer === true) noteReport(node, args as unknown as CallOf<'report'>)
      if (name === 'extend') {
        const [, leaseMs] = args as unknown as CallOf<'extend'>
        for (const id of answer as string[]) {
          const lease = leases.get(id)
          if (lease?.node === node) leases.set(id, { ...lease, until: Date.now() + leaseMs })
        }
      }
      if (name === 'waitingEvents') {
        const { events } = answer as Awaited<ReturnType<Store['waitingEvents']>>
        for (const { id, text } of events) texts.set(id, text)
      }
    },
    noteStored({ id: deliveryId, jobs, dedupe }: NewDelivery, request: SentRequest): void {
      promise(dedupe?.key === request.key, `${deliveryId} was stored under another key`)
      deliveries.set(request.key, [...(deliveries.get(request.key) ?? []), deliveryId])
      for (const { id, planned } of jobs) {
        requests.set(id, request)
        if (planned.kind === 'agent' && !planned.sharesSession)
          lanes.set(planned.sessionKey, [...(lanes.get(planned.sessionKey) ?? []), id])
      }
    },
    noteAnswer(key: string): void {
      acknowledged.add(key)
      counts.acknowledged = acknowledged.size
    },
    noteHold: (label: string, until: number) => void holds.set(label, until),
    /** The clock will be set: a lease that is over stays over, because the store may have ended it. */
    noteClockStep(): void {
      for (const [id, lease] of leases) if (!isLive(lease)) leases.delete(id)
    },
    noteEnd: (jobId: string) => void ended.add(jobId),
    /** An operator tries a dead job again, after he has looked for a message of which it is not known whether it arrived. */
    noteRequeue: noteDoubt,
    noteTurn(node: Node, { runId, prompt }: RunRequest): void {
      counts.turns += 1
      promise(!recorded.has(runId), `${runId} ran again after its reply was recorded`)
      prompts.set(`${node.name} ${runId}`, prompt)
    },
    async notePost(node: Node, { jobId, nonce, text }: { jobId: string; nonce: string; text: string }): Promise<void> {
      promise(marked.get(jobId) === node, `${jobId} was posted by a gateway without a stored mark`)
      const job = await store.job(jobId)
      const post = job?.posts.find((each) => each.nonce === nonce)
      promise(post?.state === 'sending', `a message of ${jobId} was posted that is not stored as being sent`)
      const reply = job?.steps.find(({ name }) => name === 'run')?.result
      promise(job?.planned.kind !== 'agent' || reply === text, `${jobId} posted a reply that is not the recorded one`)
    },
    noteArrival(jobId: string, nonce: string): void {
      counts.posts += 1
      const before = arrived.get(nonce)?.copies ?? 0
      arrived.set(nonce, { jobId, copies: before + 1 })
    },
    noteDoubt,
    /** What must be true when nothing waits any more. */
    async close(): Promise<void> {
      for (const key of acknowledged) {
        promise((await store.findAnswer({ hook: 'github', key })) !== undefined, `${key} was acknowledged and is lost`)
      }
      for (const [key, ids] of deliveries) promise(ids.length === 1, `${key} was stored ${ids.length} times`)
      for (const id of requests.keys()) {
        const job = await store.job(id)
        const isOver = job !== undefined && !['queued', 'running'].includes(job.state)
        promise(isOver, `${id} is ${job?.state ?? 'lost'} at the end`)
        const wasPosted = job?.steps.some(({ name, state }) => name === 'deliver' && state === 'done') === true
        for (const { nonce } of wasPosted ? (job?.posts ?? []) : [])
          promise(arrived.has(nonce), `${id} is done, and its message did not arrive`)
      }
      const left = await store.waitingEvents({ agentId: 'main', sessionKey: 'main', limit: 0 })
      promise(left.count === 0, `${left.count} events wait at the end`)
      for (const { jobId, copies } of arrived.values()) {
        counts.copies += copies - 1
        promise(
          copies - 1 <= (doubts.get(jobId) ?? 0),
          `a message of ${jobId} arrived ${copies} times without a reason`,
        )
      }
    },
  }
}
