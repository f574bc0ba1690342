// The Kubernetes objects, checked with the published schemas of Kubernetes, which are inside the package `kubernetes-models`.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { renderKubernetes } from '../../src/cli/scaffold/kubernetes.ts'
import { runCommand } from './command.ts'
import { makeConfigDir } from './gateway.ts'

const require = createRequire(import.meta.url)
const facts = { port: 8790, adminPort: 8791, stopTimeoutMs: 40_000, transformsMb: 768 }
const kinds = [
  ['Deployment', true],
  ['StatefulSet', false],
] as const

const Kind = z.looseObject({ apiVersion: z.string(), kind: z.string() })
type Kind = z.infer<typeof Kind>

const readObjects = (text: string) => parseAllDocuments(text).map((document) => Kind.parse(document.toJS()))

/** Throws if a value breaks its schema. The schemas allow unknown keys, which `findTypeErrors` finds. */
function validate({ apiVersion, kind, ...fields }: Kind): void {
  const group: Record<string, new (fields: object) => { validate(): void }> = require(`kubernetes-models/${apiVersion}`)
  const Model = group[kind]
  if (Model === undefined) throw new Error(`${apiVersion} has no ${kind}`)
  new Model(fields).validate()
}

/** The errors of a compiler that knows the type of each object: unknown keys, and words that an enumeration does not have. */
function findTypeErrors(objects: readonly Kind[]): string[] {
  const lines = objects.map(
    ({ apiVersion, kind, ...fields }, index) =>
      `import type { I${kind} as T${index} } from 'kubernetes-models/${apiVersion}'\nexport const object${index}: T${index} = ${JSON.stringify({ apiVersion, kind, ...fields })}`,
  )
  const file = resolve(import.meta.dirname, 'objects-of-this-test.ts')
  const host = ts.createCompilerHost({})
  const { getSourceFile, fileExists } = host
  host.fileExists = (name) => name === file || fileExists.call(host, name)
  host.getSourceFile = (name, ...rest) =>
    name === file
      ? ts.createSourceFile(name, lines.join('\n'), ts.ScriptTarget.ES2022)
      : getSourceFile.call(host, name, ...rest)
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  }
  const program = ts.createProgram([file], options, host)
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n').split('\n').at(-1) ?? '')
}

describe.each(kinds)('the objects of a %s', (kind, sharesStore) => {
  const text = renderKubernetes({ ...facts, sharesStore })
  const objects = readObjects(text)
  const find = (wanted: string) => objects.find((object) => object.kind === wanted)

  test('each object is valid according to its published schema, and has no unknown key', () => {
    expect(objects.map((object) => object.kind)).toEqual(
      sharesStore
        ? ['Service', 'Deployment', 'PodDisruptionBudget', 'NetworkPolicy']
        : ['Service', 'StatefulSet', 'NetworkPolicy'],
    )
    for (const object of objects) validate(object)
    expect(findTypeErrors(objects)).toEqual([])
  })

  test('the schema check finds a misspelled key, a wrong word and a wrong value', () => {
    const edit = (from: string, to: string) => readObjects(text.replaceAll(from, to))
    expect(findTypeErrors(edit('readOnlyRootFilesystem', 'readonlyRootFilesystem'))).toEqual([
      expect.stringContaining('readonlyRootFilesystem'),
    ])
    expect(findTypeErrors(edit('protocol: UDP', 'protocol: UPD'))).toHaveLength(1)
    expect(() => edit('replicas: ', 'replicas: x').forEach(validate)).toThrow(/replicas/)
  })

  test('the pod meets the Pod Security Standard "restricted", and its root file system is read-only', () => {
    const Pod = z.object({
      spec: z.object({
        template: z.object({
          spec: z.object({
            automountServiceAccountToken: z.literal(false),
            securityContext: z.looseObject({
              runAsNonRoot: z.literal(true),
              runAsUser: z.int().positive(),
              seccompProfile: z.object({ type: z.literal('RuntimeDefault') }),
            }),
            containers: z.tuple([
              z.looseObject({
                securityContext: z.object({
                  allowPrivilegeEscalation: z.literal(false),
                  readOnlyRootFilesystem: z.literal(true),
                  capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
                }),
                livenessProbe: z.looseObject({ httpGet: z.object({ path: z.literal('/livez'), port: z.string() }) }),
                readinessProbe: z.looseObject({ httpGet: z.object({ path: z.literal('/readyz'), port: z.string() }) }),
              }),
            ]),
            terminationGracePeriodSeconds: z.literal(70),
          }),
        }),
      }),
    })
    expect(Pod.safeParse(find(kind)).error?.issues ?? []).toEqual([])
  })
})

describe('hookloom add service --kind kubernetes', () => {
  const add = async (config: object) => {
    const dir = makeConfigDir({ config })
    const ran = await runCommand(['add', 'service', '--kind', 'kubernetes'], { dir })
    const file = join(dir, 'kubernetes.yaml')
    const text = readFileSync(file, 'utf8')
    return { ...ran, text, kinds: readObjects(text).map(({ kind }) => kind) }
  }

  test('Kubernetes runs a store in a file as a StatefulSet, and a database as a Deployment, even if its URL is known only in the pod', async () => {
    const inFile = await add({})
    expect([inFile.code, inFile.kinds]).toEqual([0, expect.arrayContaining(['StatefulSet'])])
    expect(inFile.stdout).toContain('kubectl create secret generic hookloom-env --from-file=.env=')
    expect(inFile.stdout).not.toContain('/8"')
    expect((await add({ store: { url: '${DATABASE_URL}' } })).kinds).toContain('Deployment')
  })
  test('the memory of a pod suffices for all threads that run transforms: also the spare, and those of replays, the page and shadows', async () => {
    const { text } = await add({ hooks: { transforms: { workers: 4, memoryMb: 256 } } })
    expect(text).toContain(`limits: { memory: ${512 + (4 + 1 + 3) * 256}Mi }`)
  })
})
