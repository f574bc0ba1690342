// Renders the files that run a gateway as a service: a systemd unit, a Dockerfile, and a compose file with a load balancer. Root reads these files, so
// every text from outside goes through the quoting function of its format.
import { createHash } from 'node:crypto'
import { takeStart, toPrintableLine } from '../../base/text.ts'
import { Problem } from '../../core/model/problem.ts'
import { renderFile } from './files.ts'

export type ServiceFacts = {
  /** The config directory, absolute. */
  readonly dir: string
  /** The folder of this package, absolute. */
  readonly program: string
  /** The path of the Node executable. */
  readonly node: string
  readonly user: string
  readonly group: string
  /** `uid:gid` of the config directory's owner. */
  readonly owner: string
  readonly stopTimeoutMs: number
  /** Whether the store is a database, so that several gateways can share it. */
  readonly sharesStore: boolean
  /** The megabytes that all threads for transforms may use together. */
  readonly transformsMb: number
  readonly hooksPath: string
  readonly port: number
  readonly adminPort: number
  /** The folders outside of the config directory to which the gateway writes: those of its store and its agents. */
  readonly writable: readonly string[]
}

/** The name and the network of an installation. They are derived from the directory, so one machine can run several installations. */
export function describeInstallation(dir: string): { readonly name: string; readonly network: string } {
  const hash = createHash('sha256').update(dir).digest()
  return { name: `hookloom-${hash.toString('hex').slice(0, 6)}`, network: `172.30.${hash[3]}.0/24` }
}

export const gateways = ['gateway-1', 'gateway-2'] as const

/** The seconds after which a service manager kills a gateway that is still stopping. Each part of the gateway may need a second more than its
 * limit. */
export function computeStopSeconds({ stopTimeoutMs }: Pick<ServiceFacts, 'stopTimeoutMs'>): number {
  return Math.ceil(stopTimeoutMs / 1000) + 20
}

export function renderUnit(facts: ServiceFacts): string {
  const { dir, program, node, user, group, writable } = facts
  // under /home or /root, ProtectHome would hide the gateway too
  const isAtHome = [dir, program, node].some((path) => /^\/(home|root)\//.test(path))
  return renderFile('hookloom.service', {
    user: quoteUnitWord(user),
    group: quoteUnitWord(group),
    home: quoteUnitWord(`HOOKLOOM_HOME=${dir}`),
    node: quoteUnitWord(node),
    main: quoteUnitArgument(`${program}/dist/main.js`),
    stopSeconds: computeStopSeconds(facts),
    writable: [dir, ...writable].map(quoteUnitWord).join(' '),
    protectHome: isAtHome ? 'read-only' : 'true',
  })
}

/** Throws `config-invalid` for a text with a control character: the text after a line break would become a line of the file. */
function checkOneLine(text: string): string {
  if (!/[\p{Cc}\u2028\u2029]/u.test(text)) return text
  throw new Problem(
    'config-invalid',
    `${JSON.stringify(takeStart(toPrintableLine(text), 200))} has a control character, so no service file can name it. Rename it. Nothing was written.`,
  )
}

/** Quotes a word of a unit, if it has spaces, quotes or backslashes. Escapes `%`, which begins a specifier. */
function quoteUnitWord(text: string): string {
  const escaped = checkOneLine(text).replaceAll('%', '%%')
  return /[\s"'\\]/.test(text) ? `"${escaped.replace(/["\\]/g, (character) => `\\${character}`)}"` : escaped
}

/** Quotes an argument of a command. Escapes `$`, which begins a variable in arguments, but not in the path of the program. */
function quoteUnitArgument(text: string): string {
  return quoteUnitWord(text.replaceAll('$', '$$$$'))
}

/** The folder in the config directory from which the image is built. It has nothing but the Dockerfile and the package, so no configuration, secret or
 * store can enter the image. */
export const imageFolder = 'image'
/** The package in that folder, as `npm pack` writes it. */
export const imagePackage = 'hookloom.tgz'

export function renderDockerfile({ port, adminPort }: Pick<ServiceFacts, 'port' | 'adminPort'>): string {
  return renderFile('Dockerfile', { port, adminPort, package: imagePackage })
}

export function renderCompose(facts: Pick<ServiceFacts, 'dir' | 'owner' | 'stopTimeoutMs'>): string {
  const { dir, owner } = facts
  return renderFile('compose.yaml', {
    ...describeInstallation(dir),
    owner,
    stopSeconds: computeStopSeconds(facts),
    image: imageFolder,
  })
}

export function renderCaddyfile({ hooksPath, port }: Pick<ServiceFacts, 'hooksPath' | 'port'>): string {
  return renderFile('Caddyfile', { path: quoteCaddyWord(`${hooksPath}/*`), port })
}

/** Quotes a text for the file of the load balancer. Throws `config-invalid` for braces, which make a placeholder even inside quotes. */
function quoteCaddyWord(text: string): string {
  const word = checkOneLine(text)
  if (/[{}]/.test(word)) throw new Problem('config-invalid', 'hooks.path must not have braces. Nothing was written.')
  return /^[\w./*~-]+$/.test(word) ? word : `"${word.replace(/["\\]/g, (character) => `\\${character}`)}"`
}
