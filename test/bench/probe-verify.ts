// The cost of a proof in addition to its hash: verify, compared with createHmac of the same bytes with a prepared key. Measured
// alternately.
import { createHmac, createSecretKey } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { createVerifier } from '../../src/gateway/proofs/verify.ts'
import { signRequest } from '../../src/gateway/proofs/verifiers/sign.ts'
import { createEventBody } from './events.ts'
import type { RunningProbe } from './probe.ts'
import { computeMedian } from './statistics.ts'
import { verifySchemes } from './figures.ts'
import { builtInSenders } from '../../src/gateway/built-in.ts'

const windows = 40
const callsOfWindow = 500
const warmWindows = 10
const bodyBytes = 1000
const keyBytes = Buffer.alloc(24, 'bench')

/** The text that a scheme signs before the body. */
const toPreamble: Record<(typeof verifySchemes)[number], (seconds: number) => string> = {
  github: () => '',
  slack: (seconds) => `v0:${seconds}:`,
  stripe: (seconds) => `${seconds}.`,
  'standard-webhooks': (seconds) => `msg_${seconds}000.${seconds}.`,
}

type Pair = { readonly scheme: string; readonly verify: () => void; readonly hash: () => void }

export function createVerifyProbe(): RunningProbe {
  const pairs = verifySchemes.map(createPair)
  for (const { verify, hash } of pairs) {
    for (let window = 0; window < warmWindows; window += 1) for (const call of [verify, hash]) measure(call)
  }
  return async (round) => {
    const figures: Record<string, number> = {}
    for (const { scheme, verify, hash } of pairs) {
      const [proofs, hashes]: [number[], number[]] = [[], []]
      for (let window = 0; window < windows; window += 1) {
        const turns = [() => proofs.push(measure(verify)), () => hashes.push(measure(hash))]
        // alternates the order, so that neither of the two always collects the garbage of the other
        for (const turn of (window + round) % 2 === 0 ? turns : turns.toReversed()) turn()
      }
      figures[`${scheme} added`] = computeMedian(proofs) - computeMedian(hashes)
      figures[`${scheme} hash`] = computeMedian(hashes)
    }
    return figures
  }
}

/** The microseconds of one call. */
function measure(call: () => void): number {
  const start = performance.now()
  for (let index = 0; index < callsOfWindow; index += 1) call()
  return ((performance.now() - start) * 1000) / callsOfWindow
}

function createPair(scheme: (typeof verifySchemes)[number]): Pair {
  const isStandard = scheme === 'standard-webhooks'
  const secret = isStandard ? `whsec_${keyBytes.toString('base64')}` : keyBytes.toString('latin1')
  const settings = { scheme, secret }
  const now = Date.now()
  const head = { method: 'POST', url: '/hooks/bench' }
  const body = createEventBody(bodyBytes, 1).bytes
  // the headers that a request usually has
  const plain = { 'content-type': 'application/json', 'content-length': String(body.length), 'user-agent': 'bench' }
  const given = { ...head, body, now, headers: plain }
  const request = {
    ...head,
    headers: { ...plain, ...signRequest(settings, given, { senders: builtInSenders }) },
    rawBody: body,
  }
  const verifier = createVerifier(settings, {
    senders: builtInSenders,
    now: () => now,
    fetch: async () => Promise.reject(new Error('no fetch')),
  })
  const signed = Buffer.concat([Buffer.from(toPreamble[scheme](Math.floor(now / 1000))), body])
  const key = createSecretKey(keyBytes)
  const encoding = isStandard ? 'base64' : 'hex'
  return {
    scheme,
    verify: () => {
      const verified = verifier.verify(request)
      if (!('ok' in verified) || !verified.ok) throw new Error(`${scheme} does not verify what it signed.`)
    },
    hash: () => void createHmac('sha256', key).update(signed).digest(encoding),
  }
}
