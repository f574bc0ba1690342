// Reads the request of a stored delivery whose payload was kept.
import { assemble } from '../../gateway/reload/assemble.ts'
import { type CaptureSource, type CapturableRequest, buildCaptureSource } from '../../gateway/replay/capture.ts'
import type { LoadedConfig } from '../../gateway/config/config.ts'
import type { Config } from '../../model/config/config.ts'
import { Problem } from '../../core/model/problem.ts'
import type { NamedMapping } from '../../core/mapping/compile.ts'
import { findId } from '../gateway/ids.ts'
import { readStore } from '../gateway/stored.ts'
import type { KeptDelivery } from '../../store/records.ts'
import type { Context } from '../terminal/context.ts'
import { cutLine } from '../terminal/print.ts'

/** `given`: see `findId`. `maxBytes`: see `buildCaptureSource`. Throws `not-found`, and `conflict` if the payload was not kept. */
export async function readKept(
  context: Context,
  config: Config,
  given: string,
  maxBytes?: number,
): Promise<CaptureSource> {
  const { mappings, senders, verifiers } = await assemble(context.dir, config)
  return buildCaptureSource(
    await findKept(context, given, mappings),
    { config, mappings, senders, verifiers },
    maxBytes,
  )
}

/** Names the variables whose values cannot be removed from a copy of a request, because only the gateway has them. */
export function noteUnknownValues({ note }: Context, { config, env }: Pick<LoadedConfig, 'config' | 'env'>): void {
  const unset = config.hooks.transforms.env.filter((name) => !Object.hasOwn(env, name))
  if (unset.length === 0) return
  const are = unset.length === 1 ? 'is' : 'are'
  note(
    `! ${unset.join(', ')} of hooks.transforms.env ${are} not set here: if a request has its value, the copy has it too.`,
  )
}

async function findKept(
  context: Context,
  given: string,
  mappings: readonly NamedMapping[],
): Promise<CapturableRequest> {
  const id = await findId(context, given)
  const found = await readStore(context, undefined, async (store) => ({
    record: await store.delivery(id),
    request: await store.request(id),
  }))
  const { record, request } = found ?? {}
  if (record === undefined) {
    throw new Problem('not-found', `No delivery or run has the id "${cutLine(id, 60)}". "hookloom list" shows the ids.`)
  }
  if (request !== undefined) return { record, request }
  const mapping = mappings.find((each) => each.id === record.mappingId)
  const next =
    mapping === undefined
      ? 'The payload of a finished delivery is deleted, unless "retain" of its mapping or "hooks.retain" keeps it.'
      : `Set "retain": 100 in the mapping "${mapping.id}", and send it again.`
  throw new Problem('conflict', `The payload of this delivery is not kept: it is ${record.state}. ${next}`)
}

/** A delivery, with its request if it is kept. Throws `not-found`. */
export async function readDelivery(context: Context, given: string): Promise<KeptDelivery> {
  const id = await findId(context, given)
  const found = await readStore(context, undefined, async (store) => {
    const record = await store.delivery(id)
    return record && { ...record, request: await store.request(id) }
  })
  if (found !== undefined) return found
  throw new Problem('not-found', `No delivery has the id "${cutLine(id, 60)}". "hookloom list" shows the ids.`)
}
