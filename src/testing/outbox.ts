// What an outbox promises: it lists every page, the same way each time, names its cursor without the credential, and never takes a failure of the
// API for the end of the list.
import type { ApiCall, Outbox, OutboxDefinition, OutboxHost, SentAttempt } from '../model/outbox.ts'
import { createApiCall } from '../plugins/outboxes/shared/call.ts'
import { answer, type Fault, listLongTexts, replaceFetch } from './faults.ts'

/** An outbox with an API that lists deliveries. */
export type OutboxTrial = {
  /** The options of the outbox, as in `recover`. */
  readonly options: object
  /** The same options with another credential. */
  readonly renewed: object
  /** The ids of the deliveries that the API lists, the newest first. More than one page of them checks the paging. */
  readonly ids: readonly string[]
  /** Of `ids`, the deliveries of which the API says that the receiver did not accept them: those that are fetched. */
  readonly undelivered: readonly string[]
  /** The answers of the API. No request leaves the process. */
  respond(request: Request): Response | Promise<Response>
}

const maxPages = 1_000
const startedAt = 1_767_323_045_000

/**
 * The promises that the outbox breaks, each as a sentence; an empty list if it keeps all. Replaces `fetch` of the process while it runs, so check
 * one outbox after the other.
 */
export async function checkOutbox<Options>(
  definition: OutboxDefinition<Options>,
  trial: OutboxTrial,
): Promise<string[]> {
  for (const options of [trial.options, trial.renewed]) {
    const parsed = definition.options.safeParse(options)
    if (!parsed.success) return [`The options are invalid: ${parsed.error.message}`]
  }
  const api = createApi(trial)
  const outbox = api.open(definition)
  const good = await list(api, outbox)
  if (good.thrown !== undefined) return [`A list that the API answers throws ${String(good.thrown)}.`]
  return [
    ...checkNames(definition, trial, outbox),
    ...checkList(definition, trial, { ...good, hasTimes: outbox.hasTimes }),
    ...(api.strays > 0 ? ['A request does not go through openApi, so it keeps no limit of the API.'] : []),
    ...(await checkRepeat(trial, definition, good)),
    ...(await checkFailures(trial, definition, good)),
    ...(await checkFetch(trial, definition, good)),
    ...(await checkHook(trial, definition)),
  ]
}

type Listed = {
  readonly pages: readonly { readonly attempts: readonly SentAttempt[]; readonly now?: number | undefined }[]
  readonly requests: number
  readonly isEndless: boolean
  readonly thrown: unknown
}

function checkNames<Options>(
  definition: OutboxDefinition<Options>,
  { options, renewed }: OutboxTrial,
  outbox: Outbox,
): string[] {
  const again = definition.create(definition.options.parse(renewed), createHost().host)
  return [
    ...(again.name === outbox.name ? [] : ['The name changes with the credential, so its cursor would be lost.']),
    ...(listCredentials(options, renewed).some((secret) => outbox.name.includes(secret))
      ? ['The name has the credential.']
      : []),
    ...(outbox.remembers === definition.remembers ? [] : ['The outbox and its definition differ in remembers.']),
  ]
}

function checkList<Options>(
  { remembers }: OutboxDefinition<Options>,
  { ids, undelivered }: OutboxTrial,
  { pages, isEndless, hasTimes }: Listed & { readonly hasTimes: boolean },
): string[] {
  const attempts = pages.flatMap((page) => page.attempts)
  const listed = new Set(attempts.map(({ id }) => id))
  const broken = new Set<string>()
  if (isEndless) broken.add('pages does not end.')
  if (!remembers && attempts.length > 0) broken.add('pages lists deliveries, and remembers is false.')
  const missing = ids.filter((id) => !listed.has(id))
  if (missing.length > 0) broken.add(`pages leaves out ${missing.length} of ${ids.length} deliveries: ${missing[0]}.`)
  for (const id of listed) if (!ids.includes(id)) broken.add(`pages lists ${JSON.stringify(id)}, which is no delivery.`)
  const delivered = new Set(attempts.flatMap(({ id, isDelivered }) => (isDelivered ? [id] : [])))
  const lost = undelivered.find((id) => delivered.has(id))
  if (lost !== undefined) broken.add(`pages says that ${lost} was delivered, so it would never be fetched.`)
  const again = ids.find((id) => listed.has(id) && !delivered.has(id) && !undelivered.includes(id))
  if (again !== undefined) broken.add(`pages says that ${again} was not delivered, so it would be fetched.`)
  for (const [index, { place, request, headers }] of attempts.entries()) {
    const before = attempts[index - 1]
    if (!Number.isFinite(place)) broken.add('The place of an attempt is no number.')
    if (before !== undefined && before.place < place) broken.add('pages does not list the newest attempt first.')
    const names = Object.keys(request?.headers ?? headers ?? {})
    if (names.some((name) => name !== name.toLowerCase())) broken.add('A header name is not in lower case.')
    if (request !== undefined && !(request.body instanceof Uint8Array)) broken.add('The body of a request is no bytes.')
  }
  if (hasTimes && pages.some(({ now }) => now === undefined))
    broken.add('A page has no now, although places are times.')
  return [...broken]
}

/** Two passes see the same attempts, and a reader who stops asks for no further page. */
async function checkRepeat<Options>(
  trial: OutboxTrial,
  definition: OutboxDefinition<Options>,
  good: Listed,
): Promise<string[]> {
  const api = createApi(trial)
  const outbox = api.open(definition)
  const again = await list(api, outbox)
  const first = await list(api, outbox, { pages: 1 })
  return [
    ...(toText(again) === toText(good) && toText(await list(api, outbox)) === toText(good)
      ? []
      : ['A second pass lists other attempts, so a delivery would be stored twice or not at all.']),
    ...(good.pages.length < 2 || first.requests < good.requests
      ? []
      : ['pages asks for every page, although the reader stops after the first.']),
  ]
}

async function checkFailures<Options>(
  trial: OutboxTrial,
  definition: OutboxDefinition<Options>,
  good: Listed,
): Promise<string[]> {
  const broken: string[] = []
  const secrets = listCredentials(trial.options, trial.renewed)
  // without a request, nothing can fail
  if (good.requests === 0) return broken
  const limited = createApi(trial, { at: good.requests, fault: answer(429), times: 1 })
  const afterLimit = await list(limited, limited.open(definition))
  if (toText(afterLimit) !== toText(good)) broken.push('Answer 429 with Retry-After: the list is another one after it.')
  for (const [what, fault] of [
    ['Answer 401', answer(401, { error: secrets.join(' ') })],
    ['Answer 500', answer(500)],
    ['Answer of another form', async () => new Response('<html>Sorry</html>')],
  ] as const satisfies [string, Fault][]) {
    const api = createApi(trial, { at: good.requests, fault })
    const { thrown } = await list(api, api.open(definition))
    if (thrown === undefined) broken.push(`${what}: pages ends without an exception, so what is missing would be lost.`)
    if (secrets.some((secret) => String(thrown).includes(secret)))
      broken.push(`${what}: the exception has the credential.`)
  }
  return broken
}

async function checkFetch<Options>(
  trial: OutboxTrial,
  definition: OutboxDefinition<Options>,
  { pages }: Listed,
): Promise<string[]> {
  const attempt = pages.flatMap(({ attempts }) => attempts).find(({ request }) => request === undefined)
  if (attempt === undefined) return []
  const broken: string[] = []
  const api = createApi(trial)
  const [one, two] = await api.run(definition, async ({ fetch }) => [await fetch(attempt), await fetch(attempt)])
  if (one === undefined) broken.push('fetch does not find a delivery that the API has.')
  else if (!(one.body instanceof Uint8Array)) broken.push('The body of a fetched request is no bytes.')
  if (String(one?.body) !== String(two?.body)) broken.push('fetch returns another body for the same attempt.')
  const gone = createApi(trial, { at: 1, fault: answer(404) })
  const found = await gone.run(definition, ({ fetch }) => fetch(attempt)).catch((thrown: unknown) => thrown)
  if (found !== undefined) broken.push('fetch does not return undefined for a delivery that the API no longer has.')
  const down = createApi(trial, { at: 1, fault: answer(500) })
  if (await down.ends(definition, ({ fetch }) => fetch(attempt)))
    broken.push('Answer 500: fetch ends without an exception, so the delivery would be lost.')
  return broken
}

async function checkHook<Options>(trial: OutboxTrial, definition: OutboxDefinition<Options>): Promise<string[]> {
  const broken: string[] = []
  const api = createApi(trial)
  const state = await api.run(definition, (outbox) => outbox.state()).catch((thrown: unknown) => thrown)
  const isState = typeof state === 'object' && state !== null && 'isOn' in state
  if (!isState || (state.isOn !== true && !('why' in state && typeof state.why === 'string')))
    broken.push('state returns neither { isOn: true } nor { isOn: false, why }.')
  if (!(await api.ends(definition, (outbox) => outbox.turnOn())))
    broken.push('turnOn throws, although the API accepts it.')
  if (api.requests === 0) return broken
  const down = createApi(trial, { at: 1, fault: answer(500) })
  if (await down.ends(definition, (outbox) => outbox.state()))
    broken.push('Answer 500: state returns, although nobody knows it.')
  return broken
}

type Api = {
  /** Makes the outbox, whose requests are answered by the trial. */
  open<Options>(definition: OutboxDefinition<Options>): Outbox
  run<Options, Result>(
    definition: OutboxDefinition<Options>,
    work: (outbox: Outbox) => Promise<Result>,
  ): Promise<Result>
  /** False if the work throws. */
  ends<Options>(definition: OutboxDefinition<Options>, work: (outbox: Outbox) => Promise<unknown>): Promise<boolean>
  readonly fetch: typeof globalThis.fetch
  readonly requests: number
  /** The requests that did not go through `openApi`. */
  readonly strays: number
}

/** `at`: the number of the request that gets the fault, and all after it. `times`: how many get it. */
function createApi(
  { options, respond }: OutboxTrial,
  {
    at = Number.POSITIVE_INFINITY,
    fault,
    times = Number.POSITIVE_INFINITY,
  }: { at?: number; fault?: Fault; times?: number } = {},
): Api {
  let requests = 0
  const { host, inside } = createHost()
  let strays = 0
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    requests += 1
    if (!inside()) strays += 1
    return fault !== undefined && requests >= at && requests < at + times
      ? await fault(request, () => {})
      : await respond(request)
  }
  const open = <Options>(definition: OutboxDefinition<Options>) =>
    definition.create(definition.options.parse(options), host)
  const run = async <Options, Result>(
    definition: OutboxDefinition<Options>,
    work: (outbox: Outbox) => Promise<Result>,
  ) => await replaceFetch(fetch, async () => await work(open(definition)))
  return {
    open,
    run,
    ends: (definition, work) =>
      run(definition, work).then(
        () => true,
        () => false,
      ),
    fetch,
    get requests() {
      return requests
    },
    get strays() {
      return strays
    },
  }
}

/** A host without waits: its clock goes on by each pause. `inside`: whether a call of `openApi` runs. */
function createHost(): { readonly host: OutboxHost; readonly inside: () => boolean } {
  let now = startedAt
  let calls = 0
  const tools = {
    clock: () => now,
    pause: async (ms: number) => void (now += ms),
    signal: new AbortController().signal,
    onWait() {},
  }
  const openApi: OutboxHost['openApi'] = (access) => {
    const call = createApiCall(access, tools)
    const counted: ApiCall = async (request) => {
      calls += 1
      try {
        return await call(request)
      } finally {
        calls -= 1
      }
    }
    return counted
  }
  return { host: { openApi, clock: () => now }, inside: () => calls > 0 }
}

/** Reads the pages, or only the first ones. */
async function list(api: Api, outbox: Outbox, { pages: most = maxPages }: { pages?: number } = {}): Promise<Listed> {
  const before = api.requests
  const pages: Listed['pages'][number][] = []
  return await replaceFetch(api.fetch, async () => {
    try {
      for await (const page of outbox.pages()) {
        pages.push(page)
        if (pages.length >= most) break
      }
      return { pages, requests: api.requests - before, isEndless: pages.length >= maxPages, thrown: undefined }
    } catch (thrown) {
      return { pages, requests: api.requests - before, isEndless: false, thrown }
    }
  })
}

function toText({ pages }: Listed): string {
  const attempts = pages.flatMap((page) => page.attempts)
  return JSON.stringify(attempts.map(({ id, place, isDelivered, ref }) => [id, place, isDelivered, ref]))
}

/** The texts that differ between the options and those with another credential. */
function listCredentials(options: object, renewed: object): string[] {
  const others = listLongTexts(renewed)
  return listLongTexts(options).filter((secret) => !others.includes(secret))
}
