import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { renderCaddyfile, renderCompose, renderUnit, describeInstallation } from '../../src/cli/scaffold/service.ts'
import { renderConfigIgnore, renderConfigImage } from '../../src/cli/scaffold/kubernetes.ts'
import { runCommand } from './command.ts'
import { mainFile, makeConfigDir, makeFolder, writeFiles } from './gateway.ts'

const packageFolder = resolve(import.meta.dirname, '../..')
const hasProgram = (program: string, ...args: string[]) => spawnSync(program, args).status === 0
const read = (dir: string, file: string) => readFileSync(join(dir, file), 'utf8')
const add = (dir: string, kind: string) => runCommand(['add', 'service', '--kind', kind], { dir })

const isTestOfRoot = process.getuid?.() === 0
const owner = 4321
/** A config directory that does not belong to root. */
function makeOwnedDir(config: object = {}): string {
  const dir = makeConfigDir({ config })
  // only root can give a directory to another user
  if (isTestOfRoot) chownSync(dir, owner, owner)
  return dir
}

describe('hookloom add service --kind systemd', () => {
  test('the unit names this program, this directory and its owner, and is printed, so that no file of a user becomes a unit', async () => {
    const dir = makeOwnedDir({ server: { stopTimeoutMs: 100_000 } })
    const { code, stdout: unit, stderr } = await add(dir, 'systemd')
    expect(code).toBe(0)
    expect(unit).toMatch(/^\[Unit\]\n[^]*\n\[Install\]\nWantedBy=multi-user\.target\n$/)
    expect(unit).toContain(`\nExecStart=${process.execPath} ${mainFile} start\n`)
    expect(unit).toContain(`\nEnvironment=HOOKLOOM_HOME=${dir}\n`)
    expect(unit).toContain('\nTimeoutStopSec=120\n')
    expect(unit).toContain(`\nUser=${isTestOfRoot ? owner : userInfo().username}\n`)
    expect(existsSync(join(dir, 'hookloom.service'))).toBe(false)
    expect(stderr).toContain(
      `  HOOKLOOM_HOME=${dir} ${process.execPath} ${mainFile} add service --kind systemd >/etc/systemd/system/hookloom.service\n`,
    )
    expect(stderr).not.toMatch(/\bcp /)
  })

  const paths = { dir: '/srv/my hooks/100%', program: '/opt/hookloom', node: process.execPath }
  const facts = {
    ...paths,
    user: 'root',
    group: 'root',
    owner: '0:0',
    stopTimeoutMs: 1,
    sharesStore: false,
    transformsMb: 768,
    hooksPath: '/hooks',
    port: 1,
    adminPort: 2,
    writable: ['/srv/other'],
  }

  test.skipIf(!hasProgram('systemd-analyze', '--version'))(
    'systemd accepts the unit and rates it as well confined, even for unusual paths (needs systemd-analyze)',
    () => {
      const file = join(makeFolder(), 'hookloom.service')
      writeFileSync(file, renderUnit(facts))
      const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' })
      // the output also has the errors of other units of this machine
      expect(stderr.split('\n').filter((line) => line.includes('hookloom'))).toEqual([])
      const rated = spawnSync('systemd-analyze', ['security', '--offline=yes', '--threshold=20', file], {
        encoding: 'utf8',
      })
      expect(rated.stdout).toMatch(/Overall exposure level for hookloom\.service: (?:[01]\.\d|2\.0)/)
    },
  )

  test.skipIf(!isTestOfRoot)(
    'without a user for the gateway, the command names the next step and not how to start it',
    async () => {
      const { stdout, stderr } = await add(makeConfigDir(), 'systemd')
      expect(stdout).toContain('\nUser=root\n')
      expect(stderr).toContain('chown -R <user>: ')
      expect(stderr).not.toContain('systemctl')
    },
  )

  test('the unit restarts a gateway only after a failure, and limits the number of restarts', () => {
    const unit = renderUnit(facts)
    expect(unit).toMatch(/^Restart=on-failure$/m)
    expect(unit).toMatch(/^StartLimitBurst=20$/m)
  })

  test('the unit lets the gateway write its store and its workspaces', async () => {
    const dir = makeConfigDir({
      config: { store: { file: '/srv/store/x.db' }, agents: { defaults: { workspace: '/srv/work' } } },
    })
    expect((await add(dir, 'systemd')).stdout).toContain(`\nReadWritePaths=${dir} /srv/store /srv/work\n`)
  })

  test('the unit hides /home, unless the config directory is below it: then /home is read-only', () => {
    expect(renderUnit({ ...facts, node: '/usr/bin/node' })).toContain('\nProtectHome=true\n')
    expect(renderUnit({ ...facts, dir: '/home/ada/.hookloom' })).toContain('\nProtectHome=read-only\n')
  })
})

describe('hookloom add service --kind compose', () => {
  test('the compose file has two gateways, a database and a balancer that reads /readyz, and .env gets a password', async () => {
    const dir = makeConfigDir({ config: { hooks: { path: '/in' }, server: { port: 9000, adminPort: 9001 } } })
    writeFileSync(join(dir, '.env'), 'OTHER=1')
    const { code, stdout } = await add(dir, 'compose')
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringContaining(`"trustedProxies": ["${describeInstallation(dir).network}"]`),
    })
    const compose = read(dir, 'compose.yaml')
    const { uid, gid } = statSync(dir)
    expect(
      compose
        .slice(compose.indexOf('\nservices:'))
        .match(/^ {2}\S+(?=:)/gm)
        ?.map((name) => name.trim()),
    ).toEqual(['balancer', 'gateway-1', 'gateway-2', 'postgres', 'default'])
    expect(compose).toContain(`subnet: ${describeInstallation(dir).network} }`)
    expect(describeInstallation(dir)).not.toEqual(describeInstallation(`${dir}x`))
    expect(compose.match(/ build:/g)).toHaveLength(1)
    expect(read(dir, 'image/Dockerfile')).toContain('http://127.0.0.1:9001/readyz')
    expect(compose).toContain(`\n  user: '${uid}:${gid}'\n`)
    expect(compose).toContain('\n    build: ./image\n')
    expect(compose).toContain('stop_grace_period: 60s')
    expect(read(dir, 'Caddyfile')).toMatch(
      /handle \/in\/\* \{\s+reverse_proxy gateway-1:9000 gateway-2:9000 \{[^}]*health_uri \/readyz\n/,
    )
    expect(read(dir, '.env')).toMatch(/^OTHER=1\nPOSTGRES_PASSWORD=[0-9a-f]{48}\n$/)
    expect(stdout + compose).not.toContain(read(dir, '.env').slice(-49, -1))
    // Docker would create missing mount points as root
    expect(['state', 'agents', 'gateway-1', 'gateway-2'].filter((folder) => !existsSync(join(dir, folder)))).toEqual([])
  })

  test('an existing password is kept, and nothing is written if one of the files exists', async () => {
    const dir = makeConfigDir()
    writeFileSync(join(dir, '.env'), 'POSTGRES_PASSWORD=mine\n')
    writeFileSync(join(dir, 'Caddyfile'), '# mine')
    expect(await add(dir, 'compose')).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('Caddyfile exists already'),
    })
    expect(readdirSync(dir).toSorted()).toEqual(['.env', 'Caddyfile', 'hookloom.jsonc'])
    expect([read(dir, '.env'), read(dir, 'Caddyfile')]).toEqual(['POSTGRES_PASSWORD=mine\n', '# mine'])
    const other = makeConfigDir()
    writeFileSync(join(other, '.env'), 'POSTGRES_PASSWORD=mine\n')
    expect((await add(other, 'compose')).code).toBe(0)
    expect(read(other, '.env')).toBe('POSTGRES_PASSWORD=mine\n')
  })

  test.skipIf(!isTestOfRoot)(
    'a compose file that runs as root is replaced once the directory has another owner, unless it was edited',
    async () => {
      const dir = makeConfigDir()
      await add(dir, 'compose')
      chownSync(dir, owner, owner)
      expect((await add(dir, 'compose')).stdout).toContain(`changed  ${join(dir, 'compose.yaml')}\n`)
      expect(read(dir, 'compose.yaml')).toContain(`\n  user: '${owner}:${owner}'\n`)
      writeFileSync(join(dir, 'compose.yaml'), '# mine')
      expect((await add(dir, 'compose')).code).toBe(65)
    },
  )

  test.skipIf(!hasProgram('caddy', 'version'))('Caddy accepts the Caddyfile (needs caddy)', async () => {
    const dir = makeConfigDir()
    await add(dir, 'compose')
    const { status, stderr } = spawnSync(
      'caddy',
      ['validate', '--adapter', 'caddyfile', '--config', join(dir, 'Caddyfile')],
      {
        encoding: 'utf8',
        env: { ...process.env, HOME: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir },
      },
    )
    expect([status, status === 0 ? '' : stderr]).toEqual([0, ''])
  })

  test.skipIf(!hasProgram('docker', 'compose', 'version'))(
    'Docker Compose accepts the compose file (needs docker compose)',
    async () => {
      const dir = makeConfigDir()
      await add(dir, 'compose')
      const { status, stderr } = spawnSync('docker', ['compose', '--project-directory', dir, 'config', '--quiet'], {
        encoding: 'utf8',
      })
      expect([status, stderr]).toEqual([0, ''])
    },
  )
})

test('with an unset variable, the files have the default ports and the kind of store of the configuration, and a warning says so', async () => {
  const config = {
    hooks: { token: '${NOT_SET}' },
    server: { port: 9000 },
    store: { url: 'postgres://db.test/hooks' },
  }
  const dir = makeConfigDir({ config })
  const { code, stderr } = await add(dir, 'kubernetes')
  expect(code).toBe(0)
  expect(stderr).toContain('NOT_SET')
  expect(stderr).toContain('The files have the default ports, paths and limits.')
  const objects = read(dir, 'kubernetes.yaml')
  expect(objects).toContain('containerPort: 8790')
  expect(objects).toContain('kind: Deployment')
})

test('hookloom add service fails without a configuration or with an unknown kind', async () => {
  const dir = makeFolder()
  expect(await add(dir, 'systemd')).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('"hookloom init" makes one'),
  })
  expect(await add(dir, 'sysd')).toMatchObject({
    code: 64,
    stderr: expect.stringMatching(/Expected one of systemd, docker, compose, kubernetes|Did you mean/),
  })
})

describe('paths with a control character', () => {
  const plain = { dir: '/srv/h', program: '/opt/h', node: '/usr/bin/node', user: 'ada', group: 'ada', owner: '1:1' }
  const rest = { stopTimeoutMs: 1, hooksPath: '/hooks', port: 1, adminPort: 2, writable: ['/srv/other'] }
  const sizes = { sharesStore: false, transformsMb: 768 }
  const facts = { ...plain, ...rest, ...sizes }
  const bad = '/srv/x\nExecStartPre=+/bin/touch /etc/made'

  test.each([
    ['dir', { ...facts, dir: bad }],
    ['program', { ...facts, program: bad }],
    ['node', { ...facts, node: bad }],
    ['user', { ...facts, user: bad }],
    ['group', { ...facts, group: '0\rx' }],
    ['writable', { ...facts, writable: ['/srv/\u0085x'] }],
  ])('a control character in %s is not written into a unit', (_, odd) => {
    expect(() => renderUnit(odd)).toThrow(/has a control character, so no service file can name it/)
  })

  test('a control character is not written into a compose file or a Caddyfile', () => {
    const compose = renderCompose(facts)
    expect(renderCompose({ ...facts, dir: bad }).split('\n')).toHaveLength(compose.split('\n').length)
    expect(() => renderCaddyfile({ ...facts, hooksPath: '/x\n}\n' })).toThrow('has a control character')
    expect(() => renderCaddyfile({ ...facts, hooksPath: '/{env.HOME}' })).toThrow('must not have braces')
  })

  test.each([
    ['agents.defaults.workspace', { agents: { defaults: { workspace: bad } } }],
    ['agents.list[0].workspace', { agents: { list: [{ id: 'a', workspace: bad }] } }],
    ['hooks.transformsDir', { hooks: { transformsDir: 'a\tb' } }],
    ['store.file', { store: { file: '/srv/x\u007f.db' } }],
  ])('a control character in %s makes the configuration invalid, and no unit contains it', async (key, config) => {
    const dir = makeConfigDir({ config })
    const checked = await runCommand(['check'], { dir })
    expect(checked.code).toBe(78)
    expect(checked.stdout + checked.stderr).toContain(`${key} must not have control characters`)
    const { stdout } = await add(dir, 'systemd')
    expect(stdout).toContain('\nExecStart=')
    expect(stdout).not.toContain('ExecStartPre')
  })

  test.skipIf(!hasProgram('systemd-analyze', '--version'))(
    'systemd finds a program whose path has spaces, quotes, $ and %, as the unit names it (needs systemd-analyze)',
    () => {
      const folder = join(makeFolder(), `a $HOME %n "b" 'c' \\ ;`)
      const bin = join(makeFolder(), 'a $HOME %n ;')
      for (const made of [folder, bin]) mkdirSync(made)
      const node = join(bin, 'node')
      writeFileSync(node, '#!/bin/sh\n', { mode: 0o755 })
      const file = join(makeFolder(), 'hookloom.service')
      writeFileSync(file, renderUnit({ ...facts, user: 'root', group: 'root', dir: folder, program: folder, node }))
      const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' })
      expect(stderr.split('\n').filter((line) => line.includes('hookloom'))).toEqual([])
    },
  )
})

describe('container image', () => {
  const secrets = ['.env', '.env.production', 'hookloom.jsonc', 'hookloom-backup.tar.gz', 'hookloom.dump', 'backup.db']
  const hidden = [...secrets, 'state/hookloom.db', 'state/backup.db', 'agents/main/AGENTS.md', 'hooks/transforms/a.ts']

  /** Git reads these patterns as Docker does. */
  function findIgnored(text: string, files: readonly string[]): string[] {
    const folder = makeFolder()
    writeFiles(folder, { '.gitignore': text })
    spawnSync('git', ['init', '--quiet', folder])
    const { stdout } = spawnSync('git', ['-C', folder, 'check-ignore', '--no-index', ...files], { encoding: 'utf8' })
    return stdout.trimEnd().split('\n')
  }

  test('the image is built from the package and nothing else, so no state, secret or backup can enter it', async () => {
    const dir = makeConfigDir()
    writeFiles(dir, Object.fromEntries(hidden.map((file) => [file, 'x'])))
    const { code, stdout } = await add(dir, 'docker')
    expect([code, stdout]).toEqual([0, expect.stringContaining(`\n  docker build --tag hookloom ${dir}/image\n`)])
    expect(readdirSync(join(dir, 'image')).toSorted()).toEqual(['Dockerfile', 'hookloom.tgz'])
    const sources = [...read(dir, 'image/Dockerfile').matchAll(/^(?:COPY|ADD) (?!--from=build)(.*) \S+$/gm)]
    expect(sources.map(([, names]) => names)).toEqual(['hookloom.tgz'])
    const { stdout: list } = spawnSync('tar', ['-tzf', join(dir, 'image/hookloom.tgz')], { encoding: 'utf8' })
    expect(list).toMatch(/^package\/dist\/main\.js$/m)
    const { files }: { files: readonly string[] } = JSON.parse(read(packageFolder, 'package.json'))
    const tops = new Set(
      list
        .trim()
        .split('\n')
        .map((name) => name.split('/')[1]),
    )
    expect([...tops].toSorted()).toEqual(
      ['LICENSE', 'README.md', 'package.json', ...new Set(files.map((file) => file.split('/')[0]))].toSorted(),
    )
  })

  test('the command repeats the limits of the configuration, and packs again over an older package', async () => {
    const dir = makeOwnedDir({ server: { port: 9000, stopTimeoutMs: 100_000 } })
    writeFiles(dir, { 'image/hookloom.tgz': 'old' })
    const { stdout } = await add(dir, 'docker')
    expect(stdout).toContain('--stop-timeout 120 ')
    expect(stdout).toContain(` --volume ${dir}:/data --publish 127.0.0.1:9000:9000 hookloom\n`)
    expect(stdout).toContain('--read-only --tmpfs /tmp --cap-drop ALL ')
    expect(statSync(join(dir, 'image/hookloom.tgz')).size).toBeGreaterThan(1_000_000)
    const configured = [...renderConfigImage().matchAll(/^(?:COPY|ADD) --chown=\S+ (.*) \S+$/gm)]
    expect(configured.map(([, names]) => names)).toEqual(['hookloom.jsonc', 'hooks'])
  })

  test('an image with a configuration includes the modules, but no secret, store or workspace', () => {
    const modules = ['hookloom.jsonc', 'hooks/transforms/a.ts', 'hooks/transforms/a.fixtures/b.json']
    expect(findIgnored(renderConfigIgnore(), [...hidden, ...modules, 'hooks/.env'])).toEqual([
      ...hidden.filter((file) => !modules.includes(file)),
      'hooks/.env',
    ])
  })
})

test('the Caddyfile trusts X-Forwarded-For only from loopback', () => {
  const text = renderCaddyfile({ hooksPath: '/hooks', port: 1 })
  expect(text.match(/trusted_proxies .*/g)).toEqual(['trusted_proxies 127.0.0.0/8 ::1'])
})
