// A config directory with a mailbox on Dovecot, and what became of its mails.
import { buildMail, type Dovecot, password, user } from './fakes/dovecot.ts'
import { makeConfigDir } from './gateway.ts'
import { readStore } from './inside.ts'

const mapping = { id: 'mail', match: { path: 'imap' }, messageTemplate: '{{messages[0].subject}}', deliver: false }

/** `hooks.imap` without TLS on loopback, unless `more` sets it. */
export function toImapConfig({ port }: Pick<Dovecot, 'port'>, more: object = {}): object {
  const imap = { host: 'localhost', port, security: 'plain', user, password, pollSeconds: 1_740, ...more }
  return { agents: { defaults: { heartbeat: { every: 0 } } }, hooks: { mappings: [mapping], imap } }
}

export function makeImapDir(server: Pick<Dovecot, 'port'>, more: object = {}): string {
  return makeConfigDir({ config: toImapConfig(server, more) })
}

/** Subjects of the runs, in order of arrival. */
export async function readSubjects(dir: string): Promise<string[]> {
  const deliveries = await readStore(dir, (reader) => reader.deliveries({ limit: 500 }))
  const inOrder = deliveries.toSorted((one, other) => one.receivedAt - other.receivedAt)
  return inOrder.flatMap(({ jobs }) =>
    jobs.flatMap(({ planned }) => (planned.kind === 'agent' && 'action' in planned ? [planned.action.message] : [])),
  )
}

export function deliverMails(server: Dovecot, ids: readonly string[], folder?: string): void {
  for (const id of ids) server.deliver(buildMail(id), folder)
}
