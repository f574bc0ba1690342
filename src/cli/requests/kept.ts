// The request of a stored delivery, if its payload was kept.
import { assemble } from '../../live/assemble.ts'
import { type Config, toHookTokens } from '../../model/config.ts'
import type { Delivery } from '../../model/delivery.ts'
import { readPayload } from '../../model/parse-body.ts'
import { Problem } from '../../model/problem.ts'
import type { NamedMapping } from '../../pipeline/compile.ts'
import { createGeneration, type Generation } from '../../pipeline/generation.ts'
import { toDelivery } from '../../server/delivery.ts'
import type { DeliveryRecord, KeptRequest } from '../../store/records.ts'
import { findId } from '../gateway/ids.ts'
import { readStore } from '../gateway/stored.ts'
import type { Context } from '../terminal/context.ts'
import { toCut } from '../terminal/print.ts'
import { type Redacted, withoutSecrets } from './redact.ts'

export type Kept = {
  readonly record: DeliveryRecord
  readonly delivery: Delivery
  /** The request without its secrets. */
  readonly safe: Redacted
  readonly mappings: readonly NamedMapping[]
  /** Without transforms. */
  readonly generation: Generation
}

/** `given`: see `findId`. Throws `not-found`, and `conflict` if the payload was not kept. */
export async function readKept(context: Context, config: Config, given: string): Promise<Kept> {
  const { mappings, verifiers } = await assemble(context.dir, config)
  const { record, request } = await findKept(context, given, mappings)
  const generation = createGeneration({ config, mappings, transforms: new Map(), verifiers })
  const { deliveryId: id, receivedAt } = record
  const delivery = toDelivery(request.head, request.body, { hook: generation.hook(request.head.path), id, receivedAt })
  const safe = withoutSecrets({ ...delivery, payload: readPayload(delivery.body) }, toSecrets(config, mappings))
  return { record, delivery, safe, mappings, generation }
}

async function findKept(
  context: Context,
  given: string,
  mappings: readonly NamedMapping[],
): Promise<{ record: DeliveryRecord; request: KeptRequest }> {
  const id = await findId(context, given)
  const found = await readStore(context, undefined, async (store) => ({
    record: await store.delivery(id),
    request: await store.request(id),
  }))
  const { record, request } = found ?? {}
  if (record === undefined) {
    throw new Problem('not-found', `No delivery or run has the id "${toCut(id, 60)}". "hookloom list" shows the ids.`)
  }
  if (request !== undefined) return { record, request }
  const mapping = mappings.find((each) => each.id === record.mappingId)
  const next =
    mapping === undefined
      ? 'The payload of a finished delivery is deleted, unless "retain" of its mapping or "hooks.retain" keeps it.'
      : `Set "retain": 100 in the mapping "${mapping.id}", and send it again.`
  throw new Problem('conflict', `The payload of this delivery is not kept: it is ${record.state}. ${next}`)
}

/** The secrets of the configuration, which no fixture may have. */
export function toSecrets(config: Config, mappings: readonly NamedMapping[]): string[] {
  const shared = mappings.flatMap(({ verify }) => [verify?.secret, ...(verify?.secrets ?? []), verify?.verifyToken])
  return [...toHookTokens(config.hooks), config.gateway.token, ...shared].flatMap((secret) => secret ?? [])
}
