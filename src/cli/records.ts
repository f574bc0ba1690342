// What `--json` shows of what is stored: every field is always there, null where nothing is known, moments in ISO 8601.
import type { PlannedAction } from '../model/action.ts'
import type { Job, Message, Session, SystemEvent } from '../model/job.ts'
import type { DeliveryRecord } from '../store/store.ts'
import { toMoment } from './print.ts'

/** An action as it was let through: the agent and the session key are those that were settled. */
export function toActionFields(planned: PlannedAction): object {
  const { kind, ...fields } = planned.action
  if (planned.kind === 'wake') return { kind, ...fields }
  return { kind, ...fields, agentId: planned.agentId, sessionKey: planned.sessionKey }
}

export function toDeliveryFields(record: DeliveryRecord): object {
  const { deliveryId, receivedAt, hook, source, event, mappingId, generation, state, jobs } = record
  return {
    deliveryId,
    receivedAt: toMoment(receivedAt),
    hook,
    source: source ?? null,
    event: event ?? null,
    mappingId: mappingId ?? null,
    generation,
    state,
    actions: jobs.map((job) => toActionFields(job.planned)),
  }
}

export function toShownFields(record: DeliveryRecord): object {
  return {
    ...toDeliveryFields(record),
    transformHash: record.transformHash ?? null,
    bodyDiffered: record.bodyDiffered,
    jobs: record.jobs.map(toJobFields),
    problem: record.problem ?? null,
    trace: record.trace,
    log: record.log,
  }
}

/** A wake has no run, so no run id. */
function toJobFields({ id, planned, state, attempts, lastError, steps }: Job): object {
  return {
    jobId: id,
    runId: planned.kind === 'agent' ? id : null,
    kind: planned.kind,
    sessionKey: planned.sessionKey,
    state,
    attempts,
    lastError: lastError ?? null,
    steps: steps.map(({ name, state: stepState, at, detail }) => ({
      name,
      state: stepState,
      at: toMoment(at),
      detail: detail ?? null,
    })),
  }
}

export function toEventFields({ agentId, sessionKey, text, source, trusted, at, deliveryId, consumedAt }: SystemEvent) {
  return {
    agentId,
    sessionKey,
    text,
    source,
    trusted,
    at: toMoment(at),
    deliveryId,
    consumedAt: consumedAt === undefined ? null : toMoment(consumedAt),
  }
}

export function toSessionFields({ sessionKey, agentId, updatedAt }: Session, messages: readonly Message[]): object {
  return {
    sessionKey,
    agentId,
    updatedAt: toMoment(updatedAt),
    messages: messages.map(({ role, text, runId, at }) => ({ role, text, runId, at: toMoment(at) })),
  }
}
