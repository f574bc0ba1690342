// The workflows that test and publish, by the keys of https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax that they use:
// another key is an error, because GitHub would refuse the whole file.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { root } from '../pages.ts'

const Texts = z.record(z.string(), z.union([z.string(), z.boolean()]))
const Permissions = z.strictObject({
  contents: z.enum(['read', 'write']).optional(),
  packages: z.enum(['read', 'write']).optional(),
  'id-token': z.literal('write').optional(),
})
const Step = z.union([
  z.strictObject({ id: z.string().optional(), uses: z.string(), with: Texts.optional() }),
  z.strictObject({ run: z.string(), env: Texts.optional() }),
])
const Service = z.strictObject({
  image: z.string(),
  env: Texts,
  ports: z.array(z.string()),
  options: z.string(),
})
const Job = z.strictObject({
  'runs-on': z.literal('ubuntu-24.04'),
  // without it, a job that hangs ends after six hours
  'timeout-minutes': z.int().max(120),
  needs: z.string().optional(),
  environment: z.literal('release').optional(),
  permissions: Permissions.optional(),
  services: z.record(z.string(), Service).optional(),
  env: Texts.optional(),
  steps: z.array(Step).min(1),
})
const Workflow = z.strictObject({
  name: z.string(),
  on: z.strictObject({
    push: z.union([z.strictObject({ branches: z.array(z.string()) }), z.strictObject({ tags: z.array(z.string()) })]),
    pull_request: z.null().optional(),
  }),
  permissions: z.strictObject({ contents: z.literal('read') }),
  concurrency: z.strictObject({ group: z.string(), 'cancel-in-progress': z.boolean() }).optional(),
  jobs: z.record(z.string(), Job),
})

const folder = join(root, '.github/workflows')
const files = readdirSync(folder)
const read = (file: string) => readFileSync(join(folder, file), 'utf8')
const parseWorkflow = (text: string) => Workflow.parse(parse(text))
const findSteps = (workflow: z.infer<typeof Workflow>) => Object.values(workflow.jobs).flatMap(({ steps }) => steps)

describe.each(files)('the workflow %s', (file) => {
  const text = read(file)
  const workflow = parseWorkflow(text)
  const steps = findSteps(workflow)

  test('each action is a commit, and its line names the version', () => {
    const lines = text.split('\n').filter((line) => line.includes('uses:'))
    expect(lines).toHaveLength(steps.filter((step) => 'uses' in step).length)
    expect(lines.filter((line) => !/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([])
  })

  test('a checkout keeps no credential, and no script contains an expression, which a name of a branch could extend', () => {
    const checkouts = steps.filter((step) => 'uses' in step && step.uses.startsWith('actions/checkout@'))
    expect(checkouts.map((step) => ('with' in step ? step.with : {}))).toEqual(
      checkouts.map(() => ({ 'persist-credentials': false })),
    )
    expect(steps.filter((step) => 'run' in step && step.run.includes('${{'))).toEqual([])
  })

  test('its scripts name commands and files that exist', () => {
    const scripts = steps.flatMap((step) => ('run' in step ? [step.run] : []))
    const { scripts: known } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    const named = scripts.flatMap((script) => [...script.matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name))
    expect(named.filter((name) => !Object.hasOwn(known, name))).toEqual([])
    for (const script of scripts.filter((one) => one.startsWith('.'))) expect(existsSync(join(root, script))).toBe(true)
  })

  test('a key that the syntax does not have is found', () => {
    expect(() => parseWorkflow(text.replace('runs-on:', 'run-on:'))).toThrow('run-on')
    expect(() => parseWorkflow(text.replace('contents: read', 'contents: write'))).toThrow('contents')
  })
})

test('only a release may publish, each of its two jobs with the rights that it needs, after a person has agreed', () => {
  const jobs = files.flatMap((file) =>
    Object.entries(parseWorkflow(read(file)).jobs).map(([name, job]) => ({ name: `${file} ${name}`, ...job })),
  )
  const rights = jobs.flatMap(({ name, permissions, environment }) =>
    permissions === undefined ? [] : [{ name, permissions, environment }],
  )
  const needed = { contents: 'read', 'id-token': 'write' }
  expect(rights).toEqual([
    { name: 'release.yml npm', permissions: needed, environment: 'release' },
    { name: 'release.yml image', permissions: { ...needed, packages: 'write' }, environment: 'release' },
  ])
  const release = parseWorkflow(read('release.yml'))
  expect(release.on).toEqual({ push: { tags: ['v*'] } })
  const build = findSteps(release).find((step) => 'id' in step && step.id === 'build')
  expect(build).toMatchObject({ with: { platforms: 'linux/amd64,linux/arm64', sbom: true, provenance: 'mode=max' } })
  const scripts = findSteps(release).flatMap((step) => ('run' in step ? [step.run] : []))
  expect(scripts).toContainEqual(expect.stringMatching(/^npm publish --provenance /))
  expect(scripts).toContainEqual(expect.stringMatching(/^cosign sign --yes "\$IMAGE@\$DIGEST"$/))
})

test('what only an owner can do is one list of five lines', () => {
  const page = readFileSync(join(root, '.github/CONTRIBUTING.md'), 'utf8')
  const [, list = ''] = /## Publish\n\n[^\n]*\n\n([^]*?)\n(?:\n|$)/.exec(page) ?? []
  expect(list.split('\n').map((line) => line.slice(0, 2))).toEqual(['1.', '2.', '3.', '4.', '5.'])
})
