// Waits for the next delivery of a hook with a session key, through the hook port. The gateway keeps the wait, and may restart during it.
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../base/id.ts'
import { tryParseJson } from '../base/json.ts'
import { formatCommand } from '../base/shell.ts'
import { trimSlashes } from '../base/text.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { loadConfig } from '../gateway/config/config.ts'
import { AwaitResource } from '../model/api/await.ts'
import { callGateway, findGatewayAddress, findHookToken, toGatewayProblem } from './gateway/gateway.ts'
import { type Context, withProgress } from './terminal/context.ts'
import { betweenMs, longestAskSeconds } from './wait.ts'

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
  const found = AwaitResource.safeParse(tryParseJson(text))
  if (found.success) return found.data
  throw new Problem('gateway-unreachable', `The program at ${url} is not a Hookloom gateway of this version.`)
}

/** Returns 0 if the delivery came, and 75 if it did not come in time. */
export async function awaitDelivery(context: Context, { id = newId(), ...wanted }: WantedDelivery): Promise<number> {
  const { hook, key } = wanted
  context.note(
    `Waiting for a delivery of ${hook} with the key ${key}. After an interruption: ${formatCommand`hookloom await ${hook} --key ${key} --id ${id}`}`,
  )
  const found = await withProgress(context, 'Waiting for the delivery', () => pollAwait(context, { ...wanted, id }))
  if (context.json) context.printJson(found)
  else context.print(found.deliveryId === null ? 'No delivery came in time.' : `${found.deliveryId} arrived`)
  return found.deliveryId === null ? exitCodes.limited : exitCodes.ok
}

/** How the wait ended. Once the gateway has answered, it may restart. */
async function pollAwait(context: Context, wanted: WantedDelivery): Promise<AwaitResource> {
  let hasAnswered = false
  for (;;) {
    const asked = performance.now()
    try {
      const found = await askAwait(context, wanted)
      if (found.state !== 'waiting') return found
      hasAnswered = true
    } catch (error) {
      if (!hasAnswered || !(error instanceof Problem) || error.kind !== 'unavailable') throw error
    }
    // the gateway answers at once if it is stopping or if too many requests wait
    if (performance.now() - asked < betweenMs) await sleep(betweenMs)
  }
}
