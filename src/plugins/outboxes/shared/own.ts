// Outboxes in the code of integrators. What throws, or answers nothing for a minute, is a failed pass of its sender, which is tried again. The
// other senders do not wait for it.
import { z } from 'zod'
import { type Outbox, type OutboxDefinition, type OutboxHost, type OutboxPage } from '../../../model/outbox.ts'
import { Problem } from '../../../core/model/problem.ts'

const maxIdleMs = 60_000

const Page = z.looseObject({
  attempts: z.array(
    z.looseObject({ id: z.string().min(1), place: z.number(), isDelivered: z.boolean(), ref: z.string() }),
  ),
})

/** The definition with limits. `idleMs`: how long its code may take while it calls no API. */
export function limitOutbox(
  definition: OutboxDefinition,
  { label, describeThrown }: { readonly label: string; readonly describeThrown: (thrown: unknown) => string },
  idleMs = maxIdleMs,
): OutboxDefinition {
  const fail = (what: string) => new Problem('recover-unavailable', `The outbox ${label} ${what}`)

  function create(options: unknown, host: OutboxHost): Outbox {
    let calls = 0
    const openApi: OutboxHost['openApi'] = (parts) => {
      const call = host.openApi(parts)
      return async (request) => {
        calls += 1
        try {
          return await call(request)
        } finally {
          calls -= 1
        }
      }
    }

    /** An API may ask to wait for an hour, so its calls do not count: they have limits of their own. */
    async function limit<Result>(work: () => Result | Promise<Result>): Promise<Result> {
      const tickMs = Math.max(1, Math.ceil(idleMs / 20))
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_, reject) => {
        let idle = 0
        timer = setInterval(() => {
          idle = calls > 0 ? 0 : idle + tickMs
          if (idle >= idleMs) reject(fail(`did not go on within ${idleMs / 1_000} s.`))
        }, tickMs).unref()
      })
      try {
        return await Promise.race([Promise.resolve().then(work), late])
      } catch (thrown) {
        throw thrown instanceof Problem ? thrown : fail(`threw ${describeThrown(thrown)}.`)
      } finally {
        clearInterval(timer)
      }
    }

    let made: Outbox
    try {
      made = definition.create(options, { ...host, openApi })
    } catch (thrown) {
      return createFailedOutbox(definition, fail(`threw ${describeThrown(thrown)}.`))
    }

    async function* pages(): AsyncGenerator<OutboxPage> {
      const iterator = await limit(() => made.pages()[Symbol.asyncIterator]())
      for (;;) {
        const next = await limit(() => iterator.next())
        if (next.done === true) return
        if (!Page.safeParse(next.value).success)
          throw fail('gave no page: { attempts: [{ id, place, isDelivered, ref }], now }.')
        yield next.value
      }
    }

    return {
      name: typeof made.name === 'string' ? made.name : definition.name,
      remembers: definition.remembers,
      hasTimes: made.hasTimes === true,
      overlap: typeof made.overlap === 'number' ? made.overlap : 0,
      pages,
      fetch: (attempt) => limit(() => made.fetch(attempt)),
      state: () => limit(() => made.state()),
      turnOn: () => limit(() => made.turnOn()),
    }
  }

  return { ...definition, create }
}

function createFailedOutbox({ name, remembers }: OutboxDefinition, problem: Problem): Outbox {
  const fail = async (): Promise<never> => {
    throw problem
  }
  return {
    name,
    remembers,
    hasTimes: true,
    overlap: 0,
    async *pages() {
      yield await fail()
    },
    fetch: fail,
    state: fail,
    turnOn: fail,
  }
}
