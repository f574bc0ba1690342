// Finds bundled requests by the name of their sender or transform: first those of the transforms, then those of the presets.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Fixture, parseFixture } from './fixture-files.ts'
import { findNearest } from '../../base/text.ts'
import { toJsonBody } from '../../core/model/body.ts'
import { Problem } from '../../core/model/problem.ts'
import { builtInSenders } from '../built-in.ts'
import { readEvent } from '../../core/mapping/sources.ts'
import { resolvePackagePath } from '../../base/package.ts'

/**
 * A bundled request, preferably one that becomes an action. `from`: a sender, such as `github`, or a bundled transform, such as
 * `stripe-invoice`. `event`: an event of the sender, or the name of a fixture.
 */
export function findBundledRequest(from: string, event?: string): Fixture['request'] {
  const own = listFolders().filter(({ names }) => names.includes(from))
  const requests = own.flatMap(({ folder }) => readFolder(folder))
  if (event !== undefined && requests.length > 0) return findByEvent(requests, { from, event })
  const found = requests.find(isAccepted) ?? requests[0]
  if (found !== undefined) return found.request
  const known = listBundledSenders()
  const near = findNearest(from, known)
  const next =
    near === undefined
      ? `Known: ${known.join(', ')}. For another sender, let it send a request, then give --from last.`
      : `Did you mean ${near}?`
  throw new Problem('usage-invalid', `There is no bundled request of "${from}". ${next}`)
}

/** The bundled requests of the senders and transforms with these names. */
export function listBundledRequests(wanted: ReadonlySet<string>): readonly Bundled[] {
  const found = listFolders().filter(({ names }) => names.some((name) => wanted.has(name)))
  return found.flatMap(({ folder }) => readFolder(folder))
}

/** The names of senders with bundled requests. */
function listBundledSenders(): readonly string[] {
  return [...new Set(listFolders().flatMap(({ names }) => names[0] ?? []))].toSorted()
}

function findByEvent(requests: readonly Bundled[], { from, event }: { from: string; event: string }) {
  const named = requests.filter(({ name }) => name === event.replace(/\.json$/, ''))
  const all = named.length > 0 ? named : requests.filter(({ request }) => findSampleEvent(from, request) === event)
  const found = all.find(isAccepted) ?? all[0]
  if (found !== undefined) return found.request
  const names = [...new Set(requests.map(({ name }) => name))].toSorted()
  const near = findNearest(event, names)
  const next = near === undefined ? `Known: ${names.join(', ')}.` : `Did you mean ${near}?`
  throw new Problem('usage-invalid', `No bundled request of "${from}" has the event or the name "${event}". ${next}`)
}

function isAccepted({ expect }: Fixture): boolean {
  return expect.decision === 'accept'
}

/** The event that the headers and the payload show. `from` is the name of a sender or of a transform. */
export function findSampleEvent(from: string, { headers, payload }: Pick<Fixture['request'], 'headers' | 'payload'>) {
  const sender = builtInSenders.recognise({ verifiedBy: from, headers })
  return sender && readEvent(sender, { headers, body: toJsonBody(payload) })
}

type Folder = { readonly folder: string; readonly names: readonly string[] }

/** The files of the package do not change while a process runs. */
let folders: readonly Folder[] | undefined
const fixtures = new Map<string, readonly Bundled[]>()

/** `names[0]` is the name of the sender. */
function listFolders(): readonly Folder[] {
  folders ??= findFolders()
  return folders
}

function findFolders(): Folder[] {
  const transforms = list('transforms')
    .filter((name) => name.endsWith('.fixtures'))
    .map((name) => {
      const stem = name.slice(0, -'.fixtures'.length)
      return { folder: resolvePackagePath('transforms', name), names: [stem.replace(/-.*/, ''), stem] }
    })
  const presets = list('presets')
    .map((name) => ({ folder: resolvePackagePath('presets', name, 'fixtures'), names: [name] }))
    .filter(({ folder }) => existsSync(folder))
  return [...transforms, ...presets]
}

function list(folder: string): string[] {
  return existsSync(resolvePackagePath(folder)) ? readdirSync(resolvePackagePath(folder)).toSorted() : []
}

type Bundled = Fixture & { readonly name: string }

function readFolder(folder: string): readonly Bundled[] {
  const known = fixtures.get(folder)
  if (known !== undefined) return known
  const read = readFixtures(folder)
  fixtures.set(folder, read)
  return read
}

function readFixtures(folder: string): Bundled[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return names.toSorted().flatMap((name) => {
    const fixture = parseFixture(readFileSync(join(folder, name), 'utf8'))
    return typeof fixture === 'string' ? [] : [{ ...fixture, name: name.slice(0, -'.json'.length) }]
  })
}
