// Creates a transform with its first fixture and its mapping. Overwrites nothing.
import { stringify, tryParseSentJson } from '../base/sent-json.ts'
import { trimSlashes } from '../base/text.ts'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import type { MadeTransformFields, TypedRequest } from '../model/api/bench.ts'
import { type LoadedConfig, loadConfig, parseConfig } from '../gateway/config/config.ts'
import { configFile } from '../gateway/config/text.ts'
import { codeFolderMode, codeMode, privateMode } from '../base/files.ts'
import { editConfig, writeFileAtomic } from '../gateway/config/config-file.ts'
import { resolveTransformsRoot } from '../core/transforms/root.ts'
import { exitCodes, Problem } from '../core/model/problem.ts'
import { findBundledRequest } from '../gateway/replay/bundled.ts'
import { type Context, formatInvocation } from './terminal/context.ts'
import { builtInSenders } from '../gateway/built-in.ts'
import { compileMapping } from '../core/mapping/compile.ts'
import { renderEnvLine } from '../gateway/config/env.ts'
import { greeting, type PayloadType, renderFirstTransform } from './scaffold/first-transform.ts'
import { addPlaceholderSecrets, generatePlaceholder } from './scaffold/placeholders.ts'
import { createEditorConfig } from './scaffold/folder.ts'
import { cutLine, renderFields } from './terminal/print.ts'
import { readRequest } from './requests/input.ts'
import { createGeneration, toMappingParts } from '../gateway/generation/generation.ts'
import { buildRequestShape } from '../gateway/replay/payload-shapes.ts'
import { loadGeneration, toTypesModule, writeTypes } from './types.ts'
import { noteUnknownValues, readKept } from './requests/kept.ts'
import { fetchRefused } from './requests/refused.ts'
import { findRefusal } from './gateway/refusals.ts'
import { readStore } from './gateway/stored.ts'
import { openBody, readPayload } from '../core/model/body.ts'
import { type RedactedRequest, redactRequest } from '../gateway/replay/redact.ts'
import { assemble } from '../gateway/reload/assemble.ts'
import { listConfigSecrets } from '../model/config/secrets.ts'
import type { Mapping } from '../core/model/mapping.ts'

/** `from`: the place of the first request: a file, `-` for standard input, `last`, the id of a delivery or of a refused request, or a sender. `event`: an event of
 * that sender. */
type NewOptions = { name: string; from: string | undefined; event: string | undefined }

/** Throws `usage-invalid` for an invalid name and for an unknown sender, `config-invalid` if a file exists. */
export async function createTransform(context: Context, { name, from, event }: NewOptions): Promise<number> {
  const { dir, env } = context
  checkName(name)
  const loaded = loadConfig({ dir, env })
  const { removed, ...request } = await findRequest(context, loaded, { name, from, event })
  const root = await resolveTransformsRoot(dir, loaded.config.hooks)
  const module = `${name}.ts`
  const sender = from !== undefined && isSender(from) ? from : undefined
  const { path, edited, proof } = addMapping(loaded, { name, module, sender })
  const type = from === undefined ? undefined : await findType(context, loaded, { path, edited, proof, request })
  const text = renderFirstTransform({ path, headers: request.headers, payload: request.payload }, type)
  // write the fixture before its module, and the mapping after both: a gateway that watches must never load incomplete files
  const fixture = join(root, `${name}.fixtures`, 'first.json')
  const files = [
    [fixture, text.fixture],
    [join(root, module), text.module],
  ] as const
  const there = files.find(([file]) => existsSync(file))
  if (there !== undefined) {
    throw new Problem('config-invalid', `${there[0]} exists already. Nothing was overwritten.`)
  }
  const made: [string, string][] = []
  for (const [file, content] of files) {
    await mkdir(dirname(file), { recursive: true, mode: codeFolderMode })
    await writeFile(file, content, { flag: 'wx', mode: codeMode })
    made.unshift(['created', file])
  }
  const editor = await createEditorConfig(dir)
  if (editor.what === 'created') made.push(['created', join(dir, editor.file)])
  // write the secret before the configuration: a gateway that watches it must never read an unset variable
  if (proof?.line !== undefined) made.push(['changed', await addPlaceholderSecrets(dir, [proof.line])])
  if (edited !== undefined) {
    await writeFileAtomic(join(dir, configFile), edited, privateMode)
    made.push(['changed', join(dir, configFile)])
  }
  if (type !== undefined) made.push(...(await writeHookTypes(context, path)))
  if (removed.length > 0) made.push(['removed', removed.join(', ')])
  context.print(renderFields(made))
  context.print(
    `\nPOST ${loaded.config.hooks.path}/${path} calls it.${describeEarlierMapping(loaded, { path, edited, proof }, module)}`,
  )
  if (sender !== undefined && edited !== undefined) context.print(describeProof(sender, proof))
  const next = [
    ['test', name, '--watch'],
    ['send', path, fixture],
  ].map((words) => `  ${formatInvocation(context, words)}`)
  context.print(`\nNext\n${next.join('\n')}`)
  return exitCodes.ok
}

/** Like `createTransform`, with a request that somebody typed on the page. The module has the name of its hook. */
export async function makeTransform(
  context: Context,
  { hook, headers, body }: TypedRequest,
): Promise<MadeTransformFields> {
  const payload = tryParseSentJson(body)
  if (payload === undefined) throw new Problem('usage-invalid', 'A transform is made of a request whose body is JSON.')
  const stdin = Readable.from([Buffer.from(stringify({ request: { headers, payload } }))])
  await createTransform({ ...context, stdin, print: () => {} }, { name: hook, from: '-', event: undefined })
  const { hooks } = loadConfig(context).config
  const module = `${hook}.ts`
  return { module, file: join(await resolveTransformsRoot(context.dir, hooks), module) }
}

/** The request of the first fixture, without secrets. */
async function findRequest(
  context: Context,
  loaded: LoadedConfig,
  { name: hook, from, event }: NewOptions,
): Promise<Pick<RedactedRequest, 'headers' | 'payload' | 'removed'>> {
  if (event !== undefined && (from === undefined || !isSender(from))) {
    throw new Problem('usage-invalid', '--event needs --from <sender>, as in --from github --event release.')
  }
  if (from === undefined) return { ...greeting, removed: [] }
  if (isSender(from)) return { ...redactRequest(findBundledRequest(from, event), [], builtInSenders), removed: [] }
  noteUnknownValues(context, loaded)
  const { config } = loaded
  const { mappings, senders } = await assemble(context.dir, config)
  const secrets = listConfigSecrets(config, mappings)
  if (!isId(from)) return redactRequest({ ...(await readRequest(context, from)), query: {} }, secrets, senders)
  if (from === 'last') return (await readKept(context, config, await findLast(context, hook))).safe
  const refused = await findRefusal(context, from)
  if (refused === undefined) return (await readKept(context, config, from)).safe
  const { headers, rawBody } = await fetchRefused(context, refused.requestId)
  const body = { bytes: rawBody, contentType: headers['content-type'], isProved: false }
  const jsonFields = senders.recognise({ headers })?.facts.jsonFields ?? []
  const payload = readPayload(openBody(body, { forms: true, listJsonFields: () => jsonFields }))
  return redactRequest({ headers, query: {}, payload }, secrets, senders)
}

/** The id of the newest delivery of the hook; without one, that of another hook, whose name is printed. */
async function findLast(context: Context, hook: string): Promise<string> {
  return readStore(context, 'last', async (store) => {
    const [own] = await store.deliveries({ limit: 1, hook })
    if (own !== undefined) return own.deliveryId
    const [newest] = await store.deliveries({ limit: 1 })
    if (newest !== undefined)
      context.note(`No request of the hook "${hook}" is stored: the last one came for "${cutLine(newest.hook, 60)}".`)
    return newest?.deliveryId ?? 'last'
  })
}

/** The type that `hookloom types` writes for the request. Undefined if the configuration or one of its modules is invalid. */
async function findType(
  { dir }: Context,
  { text, env }: LoadedConfig,
  { path, edited = text, proof, request }: Added & { request: Pick<RedactedRequest, 'headers' | 'payload'> },
): Promise<PayloadType | undefined> {
  const { config } = parseConfig(edited, { ...env, ...(proof && { [proof.variable]: generatePlaceholder() }) })
  if (config === undefined) return undefined
  try {
    const { mappings, senders, verifiers } = await assemble(dir, config)
    const generation = createGeneration({ config, mappings, senders, verifiers, transforms: new Map() })
    const found = buildRequestShape(generation, path, { ...request, query: {} })
    return found && { name: found.name, module: toTypesModule(path), shape: found.shape }
  } catch (error) {
    if (error instanceof Problem) return undefined
    throw error
  }
}

async function writeHookTypes(context: Context, hook: string): Promise<[string, string][]> {
  const written = await writeTypes(context, { hook, zod: false, generation: await loadGeneration(context) })
  return written.map(({ file }) => ['created', file])
}

function isId(from: string): boolean {
  return from === 'last' || /^[\da-f]{6,8}(-[\da-f-]*)?$/.test(from)
}

/** Whether `from` names a sender: it is no id, no path, and no file name with an extension. */
function isSender(from: string): boolean {
  return !isId(from) && /^[\w-]+$/.test(from) && from !== '-'
}

function checkName(name: string): void {
  if (/^(wake|agent)$/i.test(name)) {
    throw new Problem('usage-invalid', `"${name}" is a built-in hook, which no mapping overrides. Give another name.`)
  }
  if (/^[A-Za-z][\w-]{0,63}$/.test(name)) return
  throw new Problem(
    'usage-invalid',
    'The name of a transform has only letters, digits, "-" and "_", as in "greet". It starts with a letter.',
  )
}

/** `line`: the line to add to `.env`. Undefined if the variable is set. */
type Proof = { readonly scheme: string; readonly variable: string; readonly line: string | undefined }

type Added = { readonly path: string; readonly edited: string | undefined; readonly proof: Proof | undefined }

/** Adds the mapping of the module to the text of the configuration. `edited` is undefined if a mapping already names the module. */
function addMapping(
  { config, env, text }: LoadedConfig,
  { name, module, sender }: { name: string; module: string; sender: string | undefined },
): Added {
  const known = config.hooks.mappings.find(({ transform }) => transform?.module.replace(/^(\.\/)+/, '') === module)
  if (known !== undefined) return { path: trimSlashes(known.match.path ?? name), edited: undefined, proof: undefined }
  // extends the existing mapping: a separate one would accept the requests without the proof that the existing one requires
  const index = sender === undefined ? config.hooks.mappings.findIndex((mapping) => isTransformless(mapping, name)) : -1
  if (index >= 0) {
    return {
      path: name,
      edited: editConfig(text, ['hooks', 'mappings', index, 'transform'], { module }),
      proof: undefined,
    }
  }
  const mapping = { id: name, match: { path: name }, transform: { module } }
  for (const { id: scheme } of builtInSenders.schemes.filter(
    ({ source }) => sender !== undefined && source === sender,
  )) {
    const variable = `${sender?.toUpperCase().replaceAll(/[^A-Z\d]/g, '_')}_WEBHOOK_SECRET`
    const secret = env[variable] ?? generatePlaceholder()
    const verify = { scheme, secret: `\${${variable}}` }
    const edited = editConfig(text, ['hooks', 'mappings', -1], { ...mapping, verify })
    const line = env[variable] === undefined ? renderEnvLine(variable, secret) : undefined
    if (isComplete(edited, { ...env, [variable]: secret }))
      return { path: name, edited, proof: { scheme, variable, line } }
  }
  const edited = editConfig(text, ['hooks', 'mappings', -1], mapping)
  const { problems } = parseConfig(edited, env)
  if (problems.length === 0) return { path: name, edited, proof: undefined }
  throw new Problem('config-invalid', 'The configuration would be invalid with this mapping. Nothing was changed.', {
    frame: problems.join('\n'),
  })
}

/** Whether a mapping of this hook has no transform yet. */
function isTransformless({ match, transform }: Mapping, hook: string): boolean {
  return transform === undefined && match.path !== undefined && trimSlashes(match.path) === hook
}

/** Whether the last mapping of the configuration compiles. If it does, its scheme needs no setting except the secret. */
function isComplete(text: string, env: LoadedConfig['env']): boolean {
  const mapping = parseConfig(text, env).config?.hooks.mappings.at(-1)
  if (mapping === undefined) return false
  try {
    compileMapping({ ...mapping, id: 'new' }, undefined, toMappingParts({ senders: builtInSenders }))
    return true
  } catch (error) {
    if (error instanceof Problem) return false
    throw error
  }
}

function describeProof(sender: string, proof: Proof | undefined): string {
  if (proof !== undefined) {
    const { variable, scheme, line } = proof
    const is =
      line === undefined ? 'is set already' : 'is a placeholder in .env: replace it with the secret of the sender'
    return `The mapping verifies the proof of ${sender} (scheme "${scheme}"). ${variable} ${is}.`
  }
  return builtInSenders.schemes.some(({ source }) => source === sender)
    ? `${sender} signs its requests, but its scheme needs more than a secret: set verify in the mapping.`
    : `${sender} does not sign its requests: it must send the hook token.`
}

/** Warns of an earlier mapping that may take the same requests. `edited`: the configuration with the new mapping. */
function describeEarlierMapping({ config, env }: LoadedConfig, { path, edited }: Added, module: string): string {
  const { mappings } = (edited === undefined ? undefined : parseConfig(edited, env).config?.hooks) ?? config.hooks
  const own = mappings.findIndex(({ transform }) => transform?.module.replace(/^(\.\/)+/, '') === module)
  const before = mappings
    .slice(0, own < 0 ? undefined : own)
    .find(({ match }) => match.path === undefined || trimSlashes(match.path) === path)
  if (before === undefined) return ''
  return `\nBut the mapping "${before.id ?? before.match.path ?? 'without a path'}" comes first and may take the same requests.`
}
