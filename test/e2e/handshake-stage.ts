// A path for each sender that sends a handshake, and the checks that every handshake answer must pass.
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { expect } from 'vitest'
import type { MappingInput } from '../../src/define.ts'
import { hmacSchemes, publicUrl, settingsOf } from '../unit/gateway/proofs/verifiers/stage.ts'
import { type SignedGateway, startSignedGateway } from './proving.ts'
import type { Reply, RequestParts } from './wire.ts'

const discordKeys = generateKeyPairSync('ed25519')
const discordPublicKey = discordKeys.publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('hex')
/** Discord's signing key. */
export const discordKey: KeyObject = discordKeys.privateKey

/** Each id is the name of the scheme. */
const mappings: MappingInput[] = [
  ...['slack', 'zoom', 'twitch', 'front', 'intercom', 'xero', 'mcp-events'].map((id) => ({
    match: { path: id },
    verify: settingsOf(findRow(id)),
  })),
  ...['dropbox', 'nylas', 'okta', 'monday', 'microsoft-graph', 'woocommerce', 'bitbucket-server'].map((scheme) => ({
    match: { path: scheme },
    verify: { scheme, secret: `${scheme}-secret-of-it` },
  })),
  { match: { path: 'x-twitter' }, verify: { scheme: 'x-twitter', secret: 'consumer_secret_of_it' } },
  { match: { path: 'google-channel' }, verify: { scheme: 'google-channel', secret: 'chan_Token_of_the_room' } },
  { match: { path: 'trello' }, verify: { scheme: 'trello', secret: 'long-enough-for-all', publicUrl } },
  { match: { path: 'meta' }, verify: { scheme: 'meta', secret: 'long-enough-for-all', verifyToken: 'our-word' } },
  { match: { path: 'strava' }, verify: { scheme: 'strava', secret: '120475', verifyToken: 'our-word' } },
  { match: { path: 'discord' }, verify: { scheme: 'discord', publicKey: discordPublicKey } },
  { match: { path: 'aws-sns' }, verify: { scheme: 'aws-sns', topicArn: 'arn:aws:sns:us-west-2:1:t' } },
  { id: 'asana', match: { path: 'asana' }, verify: { scheme: 'asana' } },
  { id: 'notion', match: { path: 'notion' }, verify: { scheme: 'notion' } },
  { match: { path: 'github' }, verify: { scheme: 'github', secret: 'long-enough-for-all' } },
  { match: { path: 'plain' } },
]

/** The row of an HMAC scheme. */
export function findRow(id: string) {
  const row = hmacSchemes.find((scheme) => scheme.id === id)
  if (row === undefined) throw new Error(`no row ${id}`)
  return row
}

export type HandshakeGateway = SignedGateway & {
  /** Sends a handshake, and checks that nothing is stored. */
  sendHandshake(parts: RequestParts): Promise<Reply>
}

export async function startHandshakeGateway(): Promise<HandshakeGateway> {
  const gateway = await startSignedGateway(mappings)
  return {
    ...gateway,
    async sendHandshake(parts) {
      const before = await gateway.deliveries()
      const reply = await gateway.ask(parts)
      expect(await gateway.deliveries()).toEqual(before)
      return reply
    },
  }
}

export const asText = 'text/plain'
export const asJson = 'application/json'

/** The parts of an answer that a sender reads, and the headers that keep a browser from interpreting it. */
export function toShape({ status, headers, body }: Reply) {
  const { 'content-type': type, 'x-content-type-options': sniffing, 'cache-control': caching } = headers
  return { status, type, body, sniffing, caching }
}

/** The expected shape of an answer, by default plain text. */
export function buildExpectedAnswer({
  status = 200,
  type = asText,
  body = '',
}: {
  status?: number
  type?: string
  body?: string
}) {
  return { status, type: status === 204 ? undefined : type, body, sniffing: 'nosniff', caching: 'no-store' }
}
