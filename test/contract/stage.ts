// The clock and the records of the store suite. The clock moves only when a test moves it.
import { newId } from '../../src/base/id.ts'
import type { PlannedAction } from '../../src/core/model/action.ts'
import { jobStates } from '../../src/model/api/job-states.ts'
import type { KeptRequest, NewDelivery, NewEvent, NewJob, Settlement } from '../../src/store/records.ts'

export type Moved = { (): number; advance(ms: number): void }

/** A clock that starts at a round number. */
export function createClock(): Moved {
  let now = 1_700_000_000_000
  return Object.assign(() => now, {
    advance: (ms: number) => {
      now += ms
    },
  })
}

export function planned(sessionKey = 'hook:one'): PlannedAction {
  return {
    kind: 'agent',
    action: {
      kind: 'agent',
      message: 'Review the change',
      wakeMode: 'now',
      deliver: true,
      channel: 'last',
      allowUnsafeExternalContent: false,
    },
    agentId: 'main',
    sessionKey,
    sharesSession: false,
    sessionMode: 'isolated',
    origin: { hook: 'github', source: 'github' },
  }
}

export function newJob(over: Partial<NewJob> = {}): NewJob {
  return { id: newId(), planned: planned(), lane: undefined, state: 'queued', steps: [], events: [], ...over }
}

/** The counts of jobs in a store without jobs. */
export const noJobs = Object.fromEntries(jobStates.map((state) => [state, 0]))

export function newEvent(over: Partial<NewEvent> = {}): NewEvent {
  return {
    agentId: 'main',
    sessionKey: 'main',
    text: 'Build failed',
    source: 'ci',
    trusted: false,
    wakes: false,
    ...over,
  }
}

/** A wake as the gateway plans it: it is done when it is stored, and has one event with the same text. */
export function newWake(text: string, over: Partial<NewEvent> = {}): NewJob {
  const event = newEvent({ text, ...over })
  return newJob({
    planned: {
      kind: 'wake',
      action: {
        kind: 'wake',
        text,
        mode: event.wakes ? 'now' : 'next-heartbeat',
        allowUnsafeExternalContent: event.trusted,
      },
      agentId: event.agentId,
      sessionKey: event.sessionKey,
      origin: { hook: 'deploy', source: event.source },
    },
    state: 'done',
    steps: [{ name: 'event', state: 'done', at: 1_700_000_000_000 }],
    events: [event],
  })
}

/** A request to keep. The name of one header, `__proto__`, must not be taken for the prototype of the headers. */
export function request(body = '{"a":1}'): KeptRequest {
  const headers: Record<string, string> = Object.create(null)
  headers['x-github-event'] = 'push'
  headers['__proto__'] = 'header'
  const head = {
    method: 'POST',
    url: '/hooks/github?x=1',
    path: 'github',
    headers,
    query: { x: '1' },
    verifiedBy: undefined,
    admitted: { token: true, signedFor: [] },
  }
  return { head, body: new TextEncoder().encode(body) }
}

export function accepted(over: Partial<Settlement> = {}): Settlement {
  return {
    state: 'accepted',
    mappingId: 'github-push',
    generation: 'g1',
    transformHash: 'abc',
    jobs: [],
    trace: [{ mappingId: 'github-push', matched: true, why: 'every condition holds' }],
    log: ['seen'],
    ...over,
  }
}

export function parked(over: Partial<Settlement> = {}): Settlement {
  return accepted({
    state: 'parked',
    waitsFor: 'github.ts',
    problem: { code: 'transform-failed', detail: 'transforms/github.ts threw TypeError' },
    request: request(),
    ...over,
  })
}

export function newDelivery({ at, ...over }: { at: number } & Partial<NewDelivery>): NewDelivery {
  return {
    ...accepted(),
    id: newId(),
    receivedAt: at,
    hook: 'github',
    source: 'github',
    event: 'push',
    dedupe: undefined,
    answer: { status: 200, body: '{"ok":true}' },
    ...over,
  }
}

export function keyed(key: string, bodyHash = 'hash-1', hook = 'github') {
  return { hook, dedupe: { hook, key, bodyHash } }
}
