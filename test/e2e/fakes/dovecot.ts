// A real IMAP server: Dovecot of the system, as a process of the test with its own folder, certificate and ports. Without it, its tests skip.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onFileEnd } from '../../file-end.ts'

/** Why the tests are skipped; undefined if they can run. */
export const dovecotMissing: string | undefined =
  spawnSync('dovecot', ['--version']).error === undefined
    ? process.getuid?.() === 0
      ? undefined
      : 'Dovecot needs root to run beside that of the system'
    : 'dovecot is not installed (apt-get install dovecot-imapd)'

export const user = 'mira@example.com'
export const password = 'pw_0123456789'

export type Dovecot = {
  readonly port: number
  readonly tlsPort: number
  /** The file of the certificate, which signs itself. */
  readonly certificate: string
  /** Puts a mail into a folder, as delivery does. */
  deliver(mail: string | Buffer, folder?: string): void
  /** Runs `doveadm` for the user. */
  admin(...args: readonly string[]): string
  /** Numbers the mails of a folder again. */
  renumber(folder?: string): void
  /** Removes all mails and folders. */
  clear(): void
  stop(): Promise<void>
  start(): Promise<void>
}

export async function startDovecot(): Promise<Dovecot> {
  // a short path, because it has sockets
  const dir = mkdtempSync(join(tmpdir(), 'dc-'))
  const [port, tlsPort] = [await findFreePort(), await findFreePort()]
  const certificate = join(dir, 'cert.pem')
  const key = join(dir, 'key.pem')
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
  execFileSync(
    'openssl',
    [...request, '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', certificate],
    {
      stdio: 'ignore',
    },
  )
  writeFileSync(join(dir, 'users'), `${user}:{PLAIN}${password}::::::\n`)
  for (const name of ['run', 'mail']) mkdirSync(join(dir, name), { mode: 0o755 })
  execFileSync('chmod', ['755', dir])
  execFileSync('chown', ['-R', 'mail:mail', join(dir, 'mail')])
  const file = join(dir, 'dovecot.conf')
  writeFileSync(file, renderConfig({ dir, port, tlsPort, key, certificate }))
  let child: ReturnType<typeof spawn> | undefined

  async function stop(): Promise<void> {
    const running = child
    child = undefined
    if (running === undefined || running.exitCode !== null) return
    const closed = new Promise((resolve) => running.once('close', resolve))
    running.kill('SIGTERM')
    await closed
  }
  async function start(): Promise<void> {
    let text = ''
    child = spawn('dovecot', ['-F', '-c', file], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stderr?.on('data', (chunk) => (text += String(chunk)))
    const running = child
    await waitForPort(port, () => (running.exitCode === null ? undefined : `dovecot ended: ${text}`))
  }
  const admin = (...args: readonly string[]) =>
    execFileSync('doveadm', ['-c', file, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

  onFileEnd(async () => {
    await stop()
    rmSync(dir, { recursive: true, force: true })
  })
  await start()
  return {
    port,
    tlsPort,
    certificate,
    deliver(mail, folder = 'INBOX') {
      execFileSync('doveadm', ['-c', file, 'save', '-u', user, '-m', folder], { input: mail })
    },
    admin,
    renumber(folder = 'INBOX') {
      const validity = Number(admin('mailbox', 'status', '-u', user, 'uidvalidity', folder).split('uidvalidity=')[1])
      admin('mailbox', 'update', '-u', user, '--uid-validity', String(validity + 1), folder)
    },
    clear() {
      const folders = admin('mailbox', 'list', '-u', user).trim().split('\n')
      for (const name of folders.filter((each) => each !== 'INBOX')) admin('mailbox', 'delete', '-u', user, name)
      admin('expunge', '-u', user, 'mailbox', 'INBOX', 'all')
    },
    stop,
    start,
  }
}

type Place = { dir: string; port: number; tlsPort: number; key: string; certificate: string }

const renderConfig = ({ dir, port, tlsPort, key, certificate }: Place) => `
base_dir = ${dir}/run
log_path = ${dir}/log
protocols = imap
listen = 127.0.0.1
mail_location = maildir:${dir}/mail/%u
mail_uid = mail
mail_gid = mail
first_valid_uid = 1
ssl = yes
ssl_cert = <${certificate}
ssl_key = <${key}
disable_plaintext_auth = no
default_internal_user = dovecot
default_login_user = dovenull
auth_failure_delay = 0
mail_max_userip_connections = 50
passdb {
  driver = passwd-file
  args = scheme=PLAIN username_format=%u ${dir}/users
}
userdb {
  driver = static
  args = uid=mail gid=mail home=${dir}/mail/%u
}
namespace inbox {
  inbox = yes
}
service imap-login {
  inet_listener imap {
    port = ${port}
  }
  inet_listener imaps {
    port = ${tlsPort}
  }
}
service anvil {
  chroot =
}
`

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() =>
        typeof address === 'object' && address ? resolve(address.port) : reject(new Error('no port')),
      )
    })
  })
}

/** Waits until the port takes connections. `findEnd`: why it never will. */
async function waitForPort(port: number, findEnd: () => string | undefined): Promise<void> {
  for (;;) {
    const ended = findEnd()
    if (ended !== undefined) throw new Error(ended)
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('data', () => (socket.destroy(), resolve(true)))
      socket.once('error', () => resolve(false))
      socket.once('close', () => resolve(false))
    })
    if (isOpen) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A mail with a Message-ID of its own. */
export function buildMail(id: string, more: { readonly headers?: string; readonly body?: string } = {}): string {
  const head = [
    `Message-ID: <${id}@example.com>`,
    'From: Mira <mira@example.com>',
    `To: ${user}`,
    `Subject: subject ${id}`,
  ]
  return [
    ...head,
    ...(more.headers === undefined ? [] : [more.headers]),
    '',
    more.body ?? `The text of ${id}.`,
    '',
  ].join('\r\n')
}

/** A way to the server that can be cut. */
export async function startCable(port: number) {
  const sockets = new Set<Socket>()
  let made = 0
  const server = createServer((socket) => {
    const other = connect(port, '127.0.0.1')
    made += 1
    for (const each of [socket, other]) {
      sockets.add(each)
      each.on('error', () => {})
      each.once('close', () => (socket.destroy(), other.destroy(), sockets.delete(each)))
    }
    socket.pipe(other)
    other.pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onFileEnd(() => void server.close())
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    cut() {
      for (const each of sockets) each.destroy()
    },
    connections: () => sockets.size / 2,
    /** The connections since the start. */
    made: () => made,
  }
}
