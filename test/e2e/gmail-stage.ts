// A config directory whose mailbox lies on a Google on loopback.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { account, client, type FakeGoogle } from './fakes/google.ts'
import { makeConfigDir } from './gateway.ts'

export const project = 'proj-123456'

/** `hooks.gmail` in mode poll, unless `more` says otherwise. */
export function toGmailConfig(google: FakeGoogle, more: object = {}): object {
  const gmail = { account, mode: 'poll', pollSeconds: 5, endpoints: google.endpoints, ...more }
  const mapping = { id: 'mail', match: { path: 'gmail' }, messageTemplate: '{{messages[0].subject}}', deliver: false }
  return { hooks: { presets: ['gmail'], mappings: [mapping], gmail } }
}

export function makeMailDir(google: FakeGoogle, more: object = {}): string {
  const dir = makeConfigDir({ config: toGmailConfig(google, more) })
  writeConsentFile(dir)
  return dir
}

export function writeConsentFile(dir: string, refreshToken = 'refresh-1'): void {
  mkdirSync(join(dir, 'state'), { recursive: true })
  const scopes = ['https://www.googleapis.com/auth/gmail.readonly', 'https://www.googleapis.com/auth/pubsub']
  const { client_id: clientId, client_secret: clientSecret } = client
  const consent = { kind: 'consent', account, clientId, clientSecret, refreshToken, scopes }
  writeFileSync(join(dir, 'state/gmail-consent.json'), JSON.stringify(consent), { mode: 0o600 })
}

/** The file of the OAuth client, as the Cloud Console gives it out. */
export function writeClientFile(dir: string): string {
  const file = join(dir, 'client.json')
  writeFileSync(file, JSON.stringify({ installed: { ...client, project_id: project } }))
  return file
}
