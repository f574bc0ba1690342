// Fetches the certificates and keys of a scheme, only from the hosts that the scheme allows: https, no redirect, no private address, a limit of
// time, size and number. The URL may come from an attacker.
import type { PinRule, PinnedFetchResult, PinnedFetch } from '../../../model/proof.ts'
import { get } from 'node:https'
import { isIP } from 'node:net'
import { lookupPublic } from '../../../base/public-address.ts'

const timeoutMs = 5_000
const maxBytes = 65_536
/**
 * The maximum number of stored responses. The senders of a gateway have fewer certificates and key sets: more would be an attempt to fill the
 * memory.
 */
const maxKept = 100
/** The limits of one rule. Requests without a proof can name new URLs, and a sender never needs more fetches. */
const maxInFlight = 4
const maxPerMinute = 20

/** One GET that follows no redirect. Rejects if there is no response. */
export type Transport = (url: URL) => Promise<{ readonly status: number; readonly body: string }>

/** `at`: when the fetch began. */
type CachedFetch = { readonly at: number; readonly fetched: PinnedFetchResult }

/** The responses and open requests of one rule, by URL. Each rule has its own limits, so strangers at one scheme cannot block another. */
type RuleState = {
  readonly kept: Map<string, CachedFetch>
  readonly open: Map<string, Promise<PinnedFetchResult>>
  /** When the fetches of the last minute began. */
  misses: readonly number[]
}

/** The responses that were part of a valid proof. */
const useful = new WeakSet<PinnedFetchResult>()

/** Call it after a valid proof: from then on, the URLs of strangers do not replace the response, and the limits do not apply to its renewal. */
export function markUseful(fetched: PinnedFetchResult): void {
  useful.add(fetched)
}

export function createPinnedFetch(parts: { now: () => number; transport?: Transport }): PinnedFetch {
  const { now, transport = overHttps } = parts
  const states = new Map<string, RuleState>()

  async function fetchAndKeep(url: URL, state: RuleState, maxAgeMs: number): Promise<PinnedFetchResult> {
    const at = now()
    state.misses = [...state.misses, at]
    const fetched = await fetchOnce(transport, url)
    state.open.delete(url.href)
    const known = state.kept.get(url.href)
    if (fetched.ok && maxAgeMs > 0) {
      state.kept.delete(url.href)
      state.kept.set(url.href, { at, fetched })
      dropOldest(state.kept)
    } else if (known !== undefined) {
      // a renewal that failed: the next ones count against the limits
      useful.delete(known.fetched)
    }
    return fetched
  }

  return async (text, rule) => {
    const url = readAllowedUrl(text, rule)
    if (url === undefined)
      return { ok: false, fault: 'sender', reason: 'The request names a URL that this scheme does not allow.' }
    const { href } = url
    const state = findRuleState(states, rule)
    const known = state.kept.get(href)
    // an older response is enough for some callers, even while it is renewed for others
    if (known !== undefined && now() - known.at < rule.maxAgeMs) return known.fetched
    // an open request is shared, so that a burst of deliveries makes one fetch
    const shared = state.open.get(href)
    if (shared !== undefined) return shared
    if (!isUseful(known) && !isWithinLimits(state, now())) {
      // others may have used up the limit before the first delivery of the real sender: the answer is 503, so the sender repeats it
      return {
        ok: false,
        fault: 'gateway',
        reason: 'Too many URLs had to be fetched within a minute.',
      }
    }
    const opened = fetchAndKeep(url, state, rule.maxAgeMs)
    state.open.set(href, opened)
    return opened
  }
}

function findRuleState(states: Map<string, RuleState>, { host, path }: PinRule): RuleState {
  // one state for each rule, not for each host: for some senders a stranger can name any number of hosts, and each would have its own limits
  const name = `${host.source} ${path?.source ?? ''}`
  const state = states.get(name) ?? { kept: new Map(), open: new Map(), misses: [] }
  states.set(name, state)
  return state
}

function isWithinLimits(state: RuleState, now: number): boolean {
  // compared in both directions from now: a clock that was set back must not block all fetches
  state.misses = state.misses.filter((at) => Math.abs(now - at) < 60_000)
  return state.open.size < maxInFlight && state.misses.length < maxPerMinute
}

/** Beyond the maximum, drops the oldest response that was part of no valid proof, or else the oldest of all. */
function dropOldest(kept: Map<string, CachedFetch>): void {
  if (kept.size <= maxKept) return
  const [first] = kept.keys()
  const [stranger = first] = [...kept].filter(([, entry]) => !isUseful(entry)).map(([href]) => href)
  if (stranger !== undefined) kept.delete(stranger)
}

function isUseful(entry: CachedFetch | undefined): boolean {
  return entry !== undefined && useful.has(entry.fetched)
}

/** The parsed URL, if the rule allows the URL exactly as written. */
function readAllowedUrl(text: string, rule: Pick<PinRule, 'host' | 'path'>): URL | undefined {
  // printable ASCII only, because the parser turns other dots and digits into ASCII ones, and removes control characters
  if (!/^[\x21-\x7e]{1,2048}$/.test(text) || text.includes('\\')) return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || url.protocol !== 'https:') return undefined
  if (url.username !== '' || url.password !== '' || url.port !== '' || text.includes('@')) return undefined
  // the parser has already converted decimal, octal and hexadecimal addresses
  if (isIP(url.hostname) !== 0 || url.hostname.startsWith('[')) return undefined
  if (!rule.host.test(url.hostname)) return undefined
  return rule.path === undefined || rule.path.test(url.pathname) ? url : undefined
}

async function fetchOnce(transport: Transport, url: URL): Promise<PinnedFetchResult> {
  let answer: { status: number; body: string }
  try {
    answer = await transport(url)
  } catch {
    return { ok: false, fault: 'gateway', reason: `${url.hostname} could not be reached within ${timeoutMs / 1000} s.` }
  }
  const { status, body } = answer
  if (status >= 200 && status < 300) return { ok: true, body }
  // a redirect is not followed, because its target was not checked
  const fault = status >= 500 || status === 429 ? 'gateway' : 'sender'
  return { ok: false, fault, reason: `${url.hostname} answered ${status}.` }
}

/** Accepts any port, because the URL was checked before. */
export const overHttps: Transport = (url) =>
  new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const request = get(url, { signal, lookup: lookupPublic }, (answer) => {
      const chunks: Buffer[] = []
      let size = 0
      answer.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > maxBytes) request.destroy(new Error('over 64 kB'))
        else chunks.push(chunk)
      })
      answer.on('error', reject)
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(chunks).toString() }))
    })
    request.on('error', reject)
  })
