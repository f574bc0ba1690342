// Waits for the next delivery of a hook with a session key, through the hook port. The gateway keeps the wait, and may restart during it.
import { newId } from '../base/id.ts'
import { formatCommand } from '../base/shell.ts'
import { trimSlashes } from '../base/text.ts'
import { exitCodes } from '../core/model/problem.ts'
import { loadConfig } from '../gateway/config/config.ts'
import { AwaitResource } from '../model/api/await.ts'
import {
  callGateway,
  findGatewayAddress,
  findHookToken,
  parseGatewayAnswer,
  toGatewayProblem,
} from './gateway/gateway.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { askUntil, longestAskSeconds } from './wait.ts'

/** `id`: a wait with the same hook, key and id goes on where it was. `withinSeconds`: counted from its beginning. */
type WantedDelivery = {
  readonly hook: string
  readonly key: string
  readonly id: string | undefined
  readonly withinSeconds: number
}

/** Asks once, for at most 50 seconds. Throws the refusal of the gateway, and `gateway-unreachable`. */
export async function askAwait(
  { dir, env }: Pick<Context, 'dir' | 'env'>,
  { hook, ...asked }: WantedDelivery,
): Promise<AwaitResource> {
  const { config } = loadConfig({ dir, env })
  // read the address each time: a gateway that has restarted may have another port
  const { url } = findGatewayAddress(dir, config)
  const { status, text } = await callGateway(`${url}/${trimSlashes(hook)}/await`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${findHookToken(config)}`,
      'content-type': 'application/json',
      prefer: `wait=${Math.min(longestAskSeconds, asked.withinSeconds)}`,
    },
    body: JSON.stringify(asked),
  })
  if (status !== 200 && status !== 202) throw toGatewayProblem(status, text)
  return parseGatewayAnswer(AwaitResource, { url, text })
}

/** Returns 0 if the delivery came, and 75 if it did not come in time. */
export async function awaitDelivery(context: Context, { id = newId(), ...wanted }: WantedDelivery): Promise<number> {
  const { hook, key } = wanted
  context.note(
    `Waiting for a delivery of ${hook} with the key ${key}. After an interruption: ${formatCommand`hookloom await ${hook} --key ${key} --id ${id}`}`,
  )
  const found = await withProgress(context, 'Waiting for the delivery', () =>
    askUntil(() => askAwait(context, { ...wanted, id }), {
      isOver: ({ state }) => state !== 'waiting',
      until: Number.POSITIVE_INFINITY,
    }),
  )
  if (context.json) context.printJson(found)
  else context.print(found.deliveryId === null ? 'No delivery came in time.' : `${found.deliveryId} arrived`)
  return found.deliveryId === null ? exitCodes.limited : exitCodes.ok
}
