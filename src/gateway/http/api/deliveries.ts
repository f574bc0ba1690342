// /api/deliveries: the list, one delivery with its request, and the changes that the operator makes to it.
import { join } from 'node:path'
import type { Context } from 'koa'
import { tryParseJson } from '../../../base/json.ts'
import { cut } from '../../../base/text.ts'
import { resolveTransformsRoot } from '../../../core/transforms/root.ts'
import { listSecretConditions } from '../../../model/config/secrets.ts'
import { listOpeningProofs } from '../../../core/model/delivery.ts'
import type { Job } from '../../../model/job.ts'
import { Problem } from '../../../core/model/problem.ts'
import type { Generation } from '../../generation/generation.ts'
import type { DeliveryRecord, KeptRequest } from '../../../store/records.ts'
import type { Store } from '../../../store/store.ts'
import type { ApiParts } from './parts.ts'
import { checkBody, buildDelivery } from '../../../core/mapping/delivery.ts'
import { toJobFields, toShownFields } from '../../deliveries/records.ts'
import { toPendingSettlement, toDeliveryRow } from '../../deliveries/settlement.ts'
import { toWaitingAnswer } from '../../deliveries/answers.ts'
import { describeWaits, listWaits } from '../../deliveries/waits.ts'
import { listDeliveries } from './delivery-list.ts'
import { maxEscaped, readRequestText } from './query.ts'
import type { Handlers } from './handlers.ts'
import { findDoneMs, toSourceName } from './rows.ts'
import { readWaitEnd } from './wait-ends.ts'
import type {
  JobFields,
  MadeBy,
  RequestFields,
  RetriedFields,
  RetryFields,
  ShownDelivery,
} from '../../../model/api/answers.ts'
import { editedBody } from '../../../model/api/bodies.ts'

type DeliveryParts = Pick<
  ApiParts,
  'store' | 'generation' | 'dir' | 'rerunner' | 'clock' | 'newId' | 'lookForJobs' | 'others'
>

export function handleDeliveries(parts: DeliveryParts) {
  const { store } = parts
  return {
    'GET /api/deliveries': (request) => listDeliveries(parts, request),
    'GET /api/deliveries/{id}': async ({ params }) => readShownDelivery(parts, await findDelivery(store, params)),
    'GET /api/deliveries/{id}/request': async ({ params }) => {
      const record = await findDelivery(store, params)
      const { mappings } = parts.generation().findHook(record.hook)
      return toRequestFields(await findRequest(store, record), mappings)
    },
    'POST /api/deliveries/{id}/retry': async ({ params }) => {
      const job = await store.job(params.id)
      // a job that no delivery caused, such as a heartbeat or an alert
      if (job !== undefined && job.deliveryId === undefined) return retryTask(parts, job)
      return retryDelivery(parts, await findDelivery(store, params))
    },
    'POST /api/deliveries/{id}/drop': async ({ params }) => {
      const { deliveryId, state } = await findDelivery(store, params)
      if (await store.drop(deliveryId)) return { deliveryId, state: 'dropped' }
      throw new Problem(
        'conflict',
        `The delivery ${deliveryId} cannot be dropped: its state is ${state}. It must be pending or parked, or have a queued or dead run.`,
      )
    },
    'POST /api/deliveries/{id}/again': async ({ params, ctx }) => {
      const record = await findDelivery(store, params)
      const request = await findRequest(store, record)
      const body = await readEditedBody(ctx, parts.generation())
      return sendAgain(parts, body === undefined ? request : toEdited(request, body))
    },
  } satisfies Partial<Handlers>
}

async function readShownDelivery(parts: DeliveryParts, record: DeliveryRecord): Promise<ShownDelivery> {
  const { store, generation, dir } = parts
  const current = generation()
  const request = await store.request(record.deliveryId)
  const waitParts = { store, config: current.config, now: parts.clock() }
  const waits = await listWaits(record.jobs, waitParts)
  const waitEnd = await readWaitEnd(parts, record, waits)
  const mapping = current.mappings.find(({ id }) => id === record.mappingId)
  const admitted = request?.head.admitted
  const scheme = mapping?.verifier?.scheme ?? null
  return {
    ...toShownFields(record, await describeWaits(waits, waitParts)),
    sourceName: toSourceName(record, current.senders),
    doneMs: findDoneMs(record),
    admitted:
      admitted === undefined
        ? mapping === undefined
          ? null
          : { token: scheme === null, scheme }
        : {
            token: admitted.token,
            scheme: request?.head.verifiedBy ?? (admitted.signedFor.length > 0 ? scheme : null),
          },
    madeBy: await findMaker(record, { mapping, current, dir }),
    isRequestKept: request !== undefined,
    ...(waitEnd !== undefined && { waitEnd }),
    tasks: await readTasks(record, store),
  }
}

/** The maximum number of runs whose tasks are read: `forEach` can make thousands of runs. */
const maxRuns = 10

/** Reads the jobs that send the commit statuses and callbacks of the first runs. */
async function readTasks({ jobs }: DeliveryRecord, store: DeliveryParts['store']): Promise<JobFields[]> {
  const ids = jobs.slice(0, maxRuns).flatMap(({ planned }) => {
    if (planned.kind !== 'agent') return []
    return [planned.statusJobId, planned.callbackJobId].filter((id) => id !== undefined)
  })
  const tasks = await Promise.all(ids.map((id) => store.job(id)))
  return tasks.flatMap((task) => (task === undefined ? [] : [toJobFields(task, undefined)]))
}

async function findMaker(
  { hook, problem }: DeliveryRecord,
  { mapping, current, dir }: { mapping: Generation['mappings'][number] | undefined; current: Generation; dir: string },
): Promise<MadeBy | null> {
  if (mapping === undefined) return current.findHook(hook).kind === 'built-in' ? { kind: 'built-in' } : null
  const { transform, messageTemplate, textTemplate, action } = mapping.mapping
  if (transform === undefined) {
    return { kind: 'template', template: (action === 'wake' ? textTemplate : messageTemplate) ?? null }
  }
  const { module } = transform
  return { kind: 'transform', module, ...(await findLineInFile(current, dir, { module, frame: problem?.frame })) }
}

/** The file of a module, and the line that the frame of its problem names. */
export async function findLineInFile(
  { config }: Generation,
  dir: string,
  { module, frame }: { readonly module?: string | undefined; readonly frame?: string | undefined },
): Promise<{ file: string | null; line: number }> {
  if (module === undefined) return { file: null, line: 1 }
  const root = await resolveTransformsRoot(dir, config.hooks)
  const line = Number(/:(\d{1,7}):\d/.exec(frame ?? '')?.[1] ?? 1)
  return { file: join(root, module), line }
}

export async function findDelivery(store: Store, { id }: { readonly id: string }): Promise<DeliveryRecord> {
  const record = await store.delivery(id)
  if (record === undefined)
    throw new Problem('not-found', `No delivery or run has the id "${cut(id, 60)}". "hookloom list" shows the ids.`)
  return record
}

export async function findRequest(store: Store, { deliveryId, state }: DeliveryRecord): Promise<KeptRequest> {
  const request = await store.request(deliveryId)
  if (request !== undefined) return request
  throw new Problem(
    'conflict',
    `The request of this delivery was not kept: it is ${state}. Set "retain" in its mapping to keep the next ones.`,
  )
}

/** `mappings`: those of the hook. A header that one of them compares with a secret is masked, as the secret headers of proofs are. */
function toRequestFields({ head, body }: KeptRequest, mappings: Generation['mappings']): RequestFields {
  const { method, url, query, verifiedBy, admitted } = head
  const secret = new Set(mappings.flatMap(({ mapping }) => [...listSecretConditions(mapping).keys()]))
  const headers = Object.fromEntries(
    Object.entries(head.headers).map(([name, value]) => [name, secret.has(name) ? '[secret]' : value]),
  )
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const text = bytes.toString('utf8')
  const isText = Buffer.from(text, 'utf8').equals(bytes)
  return {
    method,
    url,
    headers,
    query,
    verifiedBy: verifiedBy ?? null,
    hasSignedId: admitted?.signedId !== undefined,
    ...(isText ? { body: text, encoding: 'utf8' } : { body: bytes.toString('base64'), encoding: 'base64' }),
  }
}

/** Runs a pending or parked delivery again. Of an accepted one, queues the dead runs again, and makes those due that fail or are in a quiet period. */
async function retryDelivery(
  { store, rerunner, lookForJobs }: DeliveryParts,
  record: DeliveryRecord,
): Promise<RetriedFields> {
  const { deliveryId } = record
  const find = async () => (await store.openDeliveries({ id: deliveryId, limit: 1 }))[0]
  if ((await find()) !== undefined) {
    await rerunner.waitForRun(deliveryId)
    const open = await find()
    return { deliveryId, state: open === undefined ? 'already settled' : await rerunner.rerun(open), jobs: [] }
  }
  const jobs: string[] = []
  for (const job of record.jobs) if (job.state === 'dead' && (await store.requeue(job.id))) jobs.push(job.id)
  const tried = await store.tryNow(deliveryId)
  if (jobs.length + tried.length === 0)
    throw new Problem(
      'conflict',
      `The delivery ${deliveryId} cannot be retried: its state is ${record.state}, and it has no dead or failing run, and none in a quiet period.`,
    )
  lookForJobs()
  return { deliveryId, state: record.state, jobs, ...(tried.length > 0 && { tried }) }
}

async function retryTask({ store, lookForJobs }: DeliveryParts, { id, state }: Job): Promise<RetriedFields> {
  if (!(await store.requeue(id)))
    throw new Problem('conflict', `The job cannot be retried: its state is ${state}, not dead.`)
  lookForJobs()
  return { deliveryId: null, state: 'queued', jobs: [id] }
}

/** The new body of `{"body": "…"}`; undefined if the request has no body. Throws `body-too-large` and `usage-invalid`. */
async function readEditedBody(ctx: Context, { config }: Generation): Promise<Uint8Array | undefined> {
  const { maxBodyBytes } = config.server
  const text = await readRequestText(ctx, maxEscaped * maxBodyBytes + 1_024)
  if (text === '') return undefined
  const edited = editedBody.schema.safeParse(tryParseJson(text ?? ''))
  if (text !== undefined && !edited.success) {
    throw new Problem('usage-invalid', editedBody.form)
  }
  const bytes = Buffer.from(edited.data?.body ?? '')
  if (text === undefined || bytes.byteLength > maxBodyBytes) {
    throw new Problem('body-too-large', `The body is over server.maxBodyBytes (${maxBodyBytes}).`)
  }
  return bytes
}

/** The request with another body. Its proofs open its mappings, but they do not prove this body. */
function toEdited({ head }: KeptRequest, body: Uint8Array): KeptRequest {
  const { token, files, ...proofs } = head.admitted
  const admitted = { token, signedFor: [], editedFor: listOpeningProofs(proofs), files }
  return { head: { ...head, verifiedBy: undefined, admitted }, body }
}

/**
 * Stores and runs a new delivery with the same head, admitted like the first one. It has no dedupe key, so that it is not taken for a
 * duplicate. If it would be refused, it is parked, where the operator sees why. Throws `body-invalid`.
 */
async function sendAgain(parts: DeliveryParts, { head, body }: KeptRequest): Promise<RetryFields> {
  const { store, generation, newId, clock, rerunner } = parts
  const current = generation()
  const hook = current.findHook(head.path)
  const deliveryId = newId()
  // the operator starts these runs: they belong to no token
  const admitted = { ...head.admitted, tokenId: undefined }
  const delivery = buildDelivery({ ...head, admitted }, body, { hook, id: deliveryId, receivedAt: clock() })
  checkBody(delivery)
  const answer = toWaitingAnswer(deliveryId, 'pending')
  const settlement = toPendingSettlement(delivery, current.id)
  const edited = admitted.editedFor !== undefined
  await store.append({ ...toDeliveryRow(delivery, { settlement, answer, dedupe: undefined }), edited })
  const [open] = await store.openDeliveries({ id: deliveryId, limit: 1 })
  return { deliveryId, state: open === undefined ? 'pending' : await rerunner.rerun(open), jobs: [] }
}
