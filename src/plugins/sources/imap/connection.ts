// A connection to an IMAP server, and its failures in words. Texts of the server are not repeated: they may quote a mail or the password.
import { ImapFlow } from 'imapflow'
import { type ImapConfig, SourceFailure } from '../shared/kit.ts'
import { refusedLoginMs } from '../shared/login.ts'
import { maxSourceBytes } from './message.ts'

const second = 1_000
/** IDLE is sent again at this interval: servers may end it after 30 minutes, and routers forget a silent connection earlier. */
const maxIdleMs = 240 * second

/** Connects and logs in. Throws a `SourceFailure`. The connection ends with the signal. `maxBytes`: of one text or file that the server sends. */
export async function connect(imap: ImapConfig, signal: AbortSignal, maxBytes = maxSourceBytes): Promise<ImapFlow> {
  const { host, security, port = security === 'tls' ? 993 : 143, user, password } = imap
  signal.throwIfAborted()
  const client = new ImapFlow({
    host,
    port,
    secure: security === 'tls',
    doSTARTTLS: security === 'starttls',
    auth: { user, pass: password },
    tls: { minVersion: 'TLSv1.2' },
    logger: false,
    disableAutoIdle: true,
    maxIdleTime: maxIdleMs,
    connectionTimeout: 30 * second,
    greetingTimeout: 15 * second,
    socketTimeout: 300 * second,
    maxLineLength: 1024 * 1024,
    maxLiteralSize: maxBytes,
    maxResponseSize: maxBytes + 1024 * 1024,
    maxResponseTokens: 100_000,
    clientInfo: { name: 'Hookloom', version: false, vendor: false, 'support-url': false },
  })
  // the failed command reports the cause too; without a listener, the event would end the process
  client.on('error', () => {})
  const close = () => client.close()
  signal.addEventListener('abort', close, { once: true })
  client.once('close', () => signal.removeEventListener('abort', close))
  try {
    await client.connect()
  } catch (error) {
    client.close()
    signal.throwIfAborted()
    throw toFailure(error, imap)
  }
  return client
}

/** What is known about an exception of the client. */
type ImapError = {
  readonly code?: unknown
  readonly authenticationFailed?: unknown
  readonly mailboxMissing?: unknown
  readonly responseStatus?: unknown
  readonly serverResponseCode?: unknown
}

function readError(error: unknown): ImapError {
  return Object(error)
}

/** Whether the server refused the command, and the connection still works. */
export function isRefusal(error: unknown): boolean {
  const { responseStatus } = readError(error)
  return responseStatus === 'NO' || responseStatus === 'BAD'
}

/** Whether an answer of the server was over a limit of the connection, which has then ended. */
export function isOverLimit(error: unknown): boolean {
  return overLimit.has(readError(error).code)
}

const overLimit: ReadonlySet<unknown> = new Set([
  'LineTooLarge',
  'LiteralTooLarge',
  'ResponseTooLarge',
  'TooManyTokens',
])

export function isMissingFolder(error: unknown): boolean {
  return readError(error).mailboxMissing === true
}

/** A login with a correct password may be refused with these: RFC 5530, and the limit of connections of Dovecot. */
const passingCodes: ReadonlySet<unknown> = new Set(['UNAVAILABLE', 'INUSE', 'LIMIT', 'SERVERBUG'])

/** The failure of a connection, with its cause and what to do. */
export function toFailure(error: unknown, { host, security }: ImapConfig): SourceFailure {
  if (error instanceof SourceFailure) return error
  const { code, authenticationFailed, serverResponseCode } = readError(error)
  // codes are words of the library, of Node.js, or of the server: of the latter, only their form is known
  const shown = [serverResponseCode, code].find((each) => typeof each === 'string' && /^\w{2,60}$/.test(each))
  const why = shown === undefined ? '' : ` (${String(shown)})`
  const fail = (what: string, retryAfterMs?: number) =>
    new SourceFailure(`${host} ${what}`, { retryAfterMs, cause: error })
  if (authenticationFailed === true && !passingCodes.has(serverResponseCode)) {
    const next = 'Correct hooks.imap.user and hooks.imap.password; many mail services want an app password.'
    return fail(`refused the user or the password${why}. ${next}`, refusedLoginMs)
  }
  if (typeof code === 'string' && /^(?:ERR_TLS_CERT|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code)) {
    const next = 'NODE_EXTRA_CA_CERTS names a file with a certificate authority of your own.'
    return fail(`has a certificate that is not trusted${why}. ${next}`)
  }
  if (isRefusal(error)) return fail(`refused a command${why}.`)
  if (code === undefined && security === 'starttls') return fail('offers no STARTTLS, so nothing was sent to it.')
  return fail(`does not answer, or ended the connection${why}.`)
}
