// What runs a gateway as a service: a systemd unit, a Dockerfile, and a compose file with its balancer. Pure: texts from facts.
import { createHash } from 'node:crypto'
import { relative } from 'node:path'

export type ServiceFacts = {
  /** The config directory, absolute. */
  readonly dir: string
  /** The folder of this package, absolute. */
  readonly program: string
  /** The path of Node. */
  readonly node: string
  readonly user: string
  readonly group: string
  /** `uid:gid` of the config directory's owner. */
  readonly owner: string
  readonly stopTimeoutMs: number
  readonly hooksPath: string
  readonly port: number
  readonly adminPort: number
  /** Folders outside of the config directory that the gateway writes: of its store, and of its agents. */
  readonly writable: readonly string[]
}

/** The name and the network of an installation: another directory has others, so two of them can run on one machine. */
export function toInstallation(dir: string): { readonly name: string; readonly network: string } {
  const hash = createHash('sha256').update(dir).digest()
  return { name: `hookloom-${hash.toString('hex').slice(0, 6)}`, network: `172.30.${hash[3]}.0/24` }
}

export const gateways = ['gateway-1', 'gateway-2'] as const

/** A service manager must not kill a gateway before it has ended by itself: each of its parts may need a second more. */
function toStopSeconds({ stopTimeoutMs }: ServiceFacts): number {
  return Math.ceil(stopTimeoutMs / 1000) + 20
}

export function renderUnit(facts: ServiceFacts): string {
  const { dir, program, node, user, group, writable } = facts
  // in a home directory, a hidden /home would hide the gateway too
  const isAtHome = [dir, program, node].some((path) => /^\/(home|root)\//.test(path))
  return `[Unit]
Description=Hookloom webhook gateway
After=network-online.target
Wants=network-online.target

[Service]
User=${user}
Group=${group}
Environment=${toUnitWord(`HOOKLOOM_HOME=${dir}`)}
ExecStart=${toUnitWord(node)} ${toUnitWord(`${program}/dist/main.js`)} start
Restart=always
RestartSec=2
# above server.stopTimeoutMs: on a stop, running requests and turns may finish
TimeoutStopSec=${toStopSeconds(facts)}

ProtectSystem=strict
ReadWritePaths=${[dir, ...writable].map(toUnitWord).join(' ')}
ProtectHome=${isAtHome ? 'read-only' : 'true'}
PrivateTmp=true
PrivateDevices=true
NoNewPrivileges=true
CapabilityBoundingSet=
ProtectClock=true
ProtectHostname=true
ProtectKernelLogs=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectControlGroups=true
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictRealtime=true
RestrictSUIDSGID=true
SystemCallArchitectures=native
LockPersonality=true
RemoveIPC=true
UMask=0077

[Install]
WantedBy=multi-user.target
`
}

/** In quotes if it has spaces. `%` begins a specifier. */
function toUnitWord(text: string): string {
  const escaped = text.replaceAll('%', '%%')
  return /[\s"'\\]/.test(text) ? `"${escaped.replace(/["\\]/g, (character) => `\\${character}`)}"` : escaped
}

/** Its context is the folder of this package, as a checkout. */
export function renderDockerfile({ port, adminPort }: Pick<ServiceFacts, 'port' | 'adminPort'>): string {
  return `FROM node:22-slim
WORKDIR /opt/hookloom
COPY . .
RUN npm ci && npm prune --omit=dev && mkdir /data && chown node:node /data
USER node
ENV HOOKLOOM_HOME=/data
VOLUME /data
EXPOSE ${port}
HEALTHCHECK --interval=5s --start-period=30s CMD ["node", "-e", "fetch('http://127.0.0.1:${adminPort}/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# exec form: node gets SIGTERM itself
CMD ["node", "dist/main.js", "start"]
`
}

/** Docker reads it next to the Dockerfile. No configuration, secret or store may enter the image. */
export function renderDockerignore({ dir, program }: Pick<ServiceFacts, 'dir' | 'program'>): string {
  const inside = relative(program, dir)
  const own = inside === '' || inside.startsWith('..') ? [] : [inside]
  return ['.git', 'node_modules', 'dist', '**/.env', '**/hookloom.jsonc', '**/*.db', '**/*.db-*', ...own, ''].join('\n')
}

export function renderCompose(facts: ServiceFacts): string {
  const { dir, program, owner } = facts
  const { name, network } = toInstallation(dir)
  const [first, second] = gateways
  return `name: ${name}

x-gateway: &gateway
  image: ${name}
  # the owner of this folder
  user: '${owner}'
  init: true
  restart: unless-stopped
  # above server.stopTimeoutMs
  stop_grace_period: ${toStopSeconds(facts)}s
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

  # one configuration for all gateways, and a state for each
  ${first}:
    <<: *gateway
    build:
      context: ${toComposeText(program)}
      dockerfile: ${toComposeText(`${dir}/Dockerfile`)}
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
    healthcheck:
      test: [CMD, pg_isready, --username=hookloom]
      interval: 5s

networks:
  default:
    ipam: { config: [{ subnet: ${network} }] }

volumes: { caddy: {}, postgres: {} }
`
}

/** JSON is YAML. `$` begins a variable. */
function toComposeText(text: string): string {
  return JSON.stringify(text.replaceAll('$', '$$$$'))
}

export function renderCaddyfile({ hooksPath, port }: Pick<ServiceFacts, 'hooksPath' | 'port'>): string {
  return `# To get a certificate, write your domain in place of :8080, and publish the ports 80 and 443 in compose.yaml.
:8080 {
  handle ${hooksPath}/* {
    reverse_proxy ${gateways.map((name) => `${name}:${port}`).join(' ')} {
      # a proxy or a tunnel on this machine names the sender
      trusted_proxies private_ranges
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
