// Handshakes that ask with a GET or HEAD, which carry no proof of who asks.
import { createHmac } from 'node:crypto'
import { createSecretSet } from './compare.ts'
import { answerJson, answerNothing, answerText, denied, type Handshake } from './handshake.ts'
import { readHeader } from './proof.ts'
import { queryOf } from './url.ts'

function asksWith(answer: Handshake['answer']): Handshake {
  return { method: 'GET', signed: false, answer }
}

/** The word goes back if the token beside it is the one that the operator gave to the sender; without one set, none is right. */
function asksHub(answer: (word: unknown) => ReturnType<Handshake['answer']>): Handshake {
  return asksWith(({ url }, { settings: { verifyToken } }) => {
    const query = queryOf(url)
    if (query.get('hub.mode') !== 'subscribe') return undefined
    const isKnown = verifyToken !== undefined && createSecretSet([verifyToken])(query.get('hub.verify_token') ?? '')
    return isKnown ? answer(query.get('hub.challenge')) : denied
  })
}

export const queryHandshakes = {
  /** Trello and Intercom only look whether the URL answers. */
  head: { method: 'HEAD', signed: false, answer: () => answerNothing() },
  /** Dropbox, Nylas: `?challenge=C` → C. */
  'get-challenge': asksWith(({ url }) => answerText(queryOf(url).get('challenge'))),
  'meta-hub': asksHub(answerText),
  'strava-hub': asksHub((word) => answerJson({ 'hub.challenge': word })),
  'okta-header': asksWith(({ headers }) =>
    answerJson({ verification: readHeader(headers, 'x-okta-verification-challenge') }),
  ),
  /** X signs the word of whoever asks: short ones only, so that no body can be smuggled in as a word. */
  'x-crc': asksWith(({ url }, { secrets }) => {
    const word = queryOf(url).get('crc_token') ?? ''
    const [secret] = secrets()
    if (secret === undefined || !/^[\w-]{1,128}$/.test(word)) return undefined
    return answerJson({ response_token: `sha256=${createHmac('sha256', secret).update(word).digest('base64')}` })
  }),
} as const satisfies Record<string, Handshake>
