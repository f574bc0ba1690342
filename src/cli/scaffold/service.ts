// Renders the files that run a gateway as a service: a systemd unit, a Dockerfile, and a compose file with a load balancer. Pure. Root
// reads these files, so every text from outside goes through the quoting function of its format.
import { createHash } from 'node:crypto'
import { relative } from 'node:path'
import { toPrintableLine } from '../../base/text.ts'
import { Problem } from '../../model/problem.ts'

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
  return `[Unit]
Description=Hookloom webhook gateway
After=network-online.target
Wants=network-online.target
# after twenty failures in ten minutes it stays down: systemctl reset-failed hookloom
StartLimitIntervalSec=600
StartLimitBurst=20

[Service]
User=${quoteUnitWord(user)}
Group=${quoteUnitWord(group)}
Environment=${quoteUnitWord(`HOOKLOOM_HOME=${dir}`)}
ExecStart=${quoteUnitWord(node)} ${quoteUnitArgument(`${program}/dist/main.js`)} start
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
# above server.stopTimeoutMs: on a stop, running requests and turns may finish
TimeoutStopSec=${computeStopSeconds(facts)}

ProtectSystem=strict
ReadWritePaths=${[dir, ...writable].map(quoteUnitWord).join(' ')}
ProtectHome=${isAtHome ? 'read-only' : 'true'}
PrivateTmp=true
PrivateDevices=true
PrivateUsers=true
NoNewPrivileges=true
CapabilityBoundingSet=
AmbientCapabilities=
ProtectClock=true
ProtectHostname=true
ProtectKernelLogs=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectControlGroups=true
ProtectProc=invisible
ProcSubset=pid
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
SystemCallArchitectures=native
# @pkey: the JavaScript engine protects the code that it writes
SystemCallFilter=@system-service @pkey
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
LockPersonality=true
KeyringMode=private
RemoveIPC=true
UMask=0077

[Install]
WantedBy=multi-user.target
`
}

/** Throws `config-invalid` for a text with a control character: the text after a line break would become a line of the file. */
function checkOneLine(text: string): string {
  if (!/[\p{Cc}\u2028\u2029]/u.test(text)) return text
  throw new Problem(
    'config-invalid',
    `${JSON.stringify(toPrintableLine(text).slice(0, 200))} has a control character, so no service file can name it. Rename it. Nothing was written.`,
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

/** The files from which the image is built. The config directory may be in the same folder, so all other files are excluded. */
const buildInputs = {
  files: ['package.json', 'package-lock.json', 'tsconfig.json'],
  folders: ['src', 'presets', 'transforms'],
}

/** The Dockerfile. Its build context is a checkout of this package. The files are named one by one, because not every builder reads
 * .dockerignore. */
export function renderDockerfile({ port, adminPort }: Pick<ServiceFacts, 'port' | 'adminPort'>): string {
  return `# the build leaves only what the program needs
FROM node:24-slim AS build
WORKDIR /opt/hookloom
COPY ${buildInputs.files.join(' ')} ./
${buildInputs.folders.map((folder) => `COPY ${folder} ${folder}`).join('\n')}
RUN npm ci && npm prune --omit=dev && rm -r src tsconfig.json package-lock.json

FROM node:24-slim
WORKDIR /opt/hookloom
COPY --from=build /opt/hookloom ./
RUN install --directory --owner=node --group=node --mode=700 /data
USER node
ENV HOOKLOOM_HOME=/data
VOLUME /data
EXPOSE ${port}
HEALTHCHECK --interval=5s --start-period=30s CMD ["node", "-e", "fetch('http://127.0.0.1:${adminPort}/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# exec form: node gets SIGTERM itself
CMD ["node", "dist/main.js", "start"]
`
}

/** The .dockerignore, which Docker reads next to the Dockerfile. No configuration, secret or store may enter the image. */
export function renderDockerignore({ dir, program }: Pick<ServiceFacts, 'dir' | 'program'>): string {
  const inside = relative(program, dir)
  const own = inside === '' || inside.startsWith('..') ? [] : [escapeIgnorePattern(`/${inside}`)]
  const kept = [...buildInputs.files, ...buildInputs.folders].map((name) => `!/${name}`)
  const never = ['**/.env*', '**/hookloom.jsonc*', '**/*.db*', '**/state', '**/node_modules', ...own]
  return ['/*', ...kept, ...never, ''].join('\n')
}

/** Replaces special characters with `?`, which matches any character. */
function escapeIgnorePattern(path: string): string {
  return path.replace(/[^\w./-]/gu, '?')
}

export function renderCompose(facts: ServiceFacts): string {
  const { dir, program, owner } = facts
  const { name, network } = describeInstallation(dir)
  const [first, second] = gateways
  return `name: ${name}

x-gateway: &gateway
  image: ${name}
  # the owner of this folder
  user: '${owner}'
  init: true
  restart: unless-stopped
  # above server.stopTimeoutMs
  stop_grace_period: ${computeStopSeconds(facts)}s
  read_only: true
  tmpfs: [/tmp]
  cap_drop: [ALL]
  security_opt: ['no-new-privileges:true']
  depends_on: { postgres: { condition: service_healthy } }
  environment:
    HOOKLOOM_HOME: /config
    DATABASE_URL: postgres://hookloom:\${POSTGRES_PASSWORD}@postgres:5432/hookloom

services:
  balancer:
    image: caddy:2
    restart: unless-stopped
    ports: ['127.0.0.1:8080:8080']
    volumes: ['./Caddyfile:/etc/caddy/Caddyfile:ro', 'caddy:/data']
    read_only: true
    tmpfs: [/config, /tmp]
    cap_drop: [ALL]
    # the program of the image has this capability, and does not start without it
    cap_add: [NET_BIND_SERVICE]
    security_opt: ['no-new-privileges:true']

  # one configuration for all gateways, and a state for each
  ${first}:
    <<: *gateway
    build:
      context: ${quoteComposeText(program)}
      dockerfile: ${quoteComposeText(`${dir}/Dockerfile`)}
    volumes: ['.:/config:ro', './agents:/config/agents', './${first}:/config/state']

  ${second}:
    <<: *gateway
    # the image that ${first} builds
    pull_policy: never
    volumes: ['.:/config:ro', './agents:/config/agents', './${second}:/config/state']

  postgres:
    image: postgres:17
    restart: unless-stopped
    environment:
      POSTGRES_USER: hookloom
      POSTGRES_DB: hookloom
      POSTGRES_PASSWORD: \${POSTGRES_PASSWORD}
    volumes: ['postgres:/var/lib/postgresql/data']
    read_only: true
    tmpfs: [/tmp, /run/postgresql]
    cap_drop: [ALL]
    # the image starts as root, gives the folders to its user, and becomes this user
    cap_add: [CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID]
    security_opt: ['no-new-privileges:true']
    healthcheck:
      test: [CMD, pg_isready, --username=hookloom]
      interval: 5s

networks:
  default:
    ipam: { config: [{ subnet: ${network} }] }

volumes: { caddy: {}, postgres: {} }
`
}

/** Quotes a text for YAML: a JSON text is valid YAML. Escapes `$`, which begins a variable. */
function quoteComposeText(text: string): string {
  return JSON.stringify(checkOneLine(text).replaceAll('$', '$$$$'))
}

export function renderCaddyfile({ hooksPath, port }: Pick<ServiceFacts, 'hooksPath' | 'port'>): string {
  return `# To get a certificate, write your domain in place of :8080, and publish the ports 80 and 443 in compose.yaml.
:8080 {
  handle ${quoteCaddyWord(`${hooksPath}/*`)} {
    reverse_proxy ${gateways.map((name) => `${name}:${port}`).join(' ')} {
      # only these may name the sender in X-Forwarded-For. Add the address of a proxy before this one
      trusted_proxies 127.0.0.0/8 ::1
      # a gateway that stops is unready first, and serves until this check has seen it
      health_uri /readyz
      health_interval 1s
      health_timeout 5s
      lb_policy least_conn
      # while a gateway cannot be connected, the request goes to another one
      lb_try_duration 5s
      lb_try_interval 100ms
    }
  }
  handle {
    respond 404
  }
}
`
}

/** Quotes a text for the file of the load balancer. Throws `config-invalid` for braces, which make a placeholder even inside quotes. */
function quoteCaddyWord(text: string): string {
  const word = checkOneLine(text)
  if (/[{}]/.test(word)) throw new Problem('config-invalid', 'hooks.path must not have braces. Nothing was written.')
  return /^[\w./*~-]+$/.test(word) ? word : `"${word.replace(/["\\]/g, (character) => `\\${character}`)}"`
}
