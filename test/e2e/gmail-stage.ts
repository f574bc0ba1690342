// A config directory with a mailbox on a fake Google.
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { account, client, type FakeGoogle } from './fakes/google.ts'
import { onFileEnd } from '../file-end.ts'
import { mainFile, makeConfigDir, toChildEnv } from './gateway.ts'
import { readStore } from './inside.ts'

export const project = 'proj-123456'

/** `hooks.gmail` in mode poll, unless `more` sets another mode. */
function toGmailConfig(google: FakeGoogle, more: object = {}): object {
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

/** The file of the OAuth client, as downloaded from the Cloud Console. */
export function writeClientFile(dir: string): string {
  const file = join(dir, 'client.json')
  writeFileSync(file, JSON.stringify({ installed: { ...client, project_id: project } }))
  return file
}

/** A mail that the fake mailbox receives. */
export const buildMail = (id: string) => ({ id, subject: `subject ${id}` })

/** Subjects of the runs, in order of arrival. */
export async function readSubjects(dir: string): Promise<string[]> {
  const deliveries = await readStore(dir, (reader) => reader.deliveries({ limit: 500 }))
  return deliveries.flatMap(({ jobs }) =>
    jobs.flatMap(({ planned }) => (planned.kind === 'agent' && 'action' in planned ? [planned.action.message] : [])),
  )
}

/** Starts `hookloom gmail run` in its own process. */
export function startRun(dir: string) {
  const child = spawn(process.execPath, [mainFile, 'gmail', 'run', '--config-dir', dir], {
    env: toChildEnv(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onFileEnd(() => child.kill('SIGKILL'))
  let text = ''
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  const printed = (pattern: RegExp) =>
    new Promise<void>((resolve) => {
      const look = (chunk = '') => {
        text += chunk
        if (pattern.test(text)) resolve()
      }
      child.stdout.setEncoding('utf8').on('data', look)
      child.stderr.setEncoding('utf8').on('data', look)
      look()
    })
  return { child, exited, printed, output: () => text }
}
