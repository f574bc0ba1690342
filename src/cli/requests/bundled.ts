// The bundled requests by the name of their sender: first those of the transforms, then those of the presets.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Fixture, parseFixture } from '../../loader/fixture-files.ts'
import { nearestOf } from '../../base/text.ts'
import { Problem } from '../../model/problem.ts'
import { inPackage } from '../scaffold/package.ts'

/** A request that becomes an action, if there is one. `from`: a sender, as in `github`, or a bundled transform, as in `stripe-invoice`. */
export function findBundledRequest(from: string): Fixture['request'] {
  const folders = listFolders()
  const own = folders.filter(({ names }) => names.includes(from))
  const fixtures = own.flatMap(({ folder }) => readFolder(folder))
  const found = fixtures.find(({ expect }) => expect.decision === 'accept') ?? fixtures[0]
  if (found !== undefined) return found.request
  const known = [...new Set(folders.flatMap(({ names }) => names[0] ?? []))].toSorted()
  const near = nearestOf(from, known)
  const next = near === undefined ? `Known: ${known.join(', ')}.` : `Did you mean ${near}?`
  throw new Problem('usage-invalid', `There is no bundled request of "${from}". ${next}`)
}

/** `names[0]` is the name of the sender. */
function listFolders(): { folder: string; names: string[] }[] {
  const transforms = list('transforms')
    .filter((name) => name.endsWith('.fixtures'))
    .map((name) => {
      const stem = name.slice(0, -'.fixtures'.length)
      return { folder: inPackage('transforms', name), names: [stem.replace(/-.*/, ''), stem] }
    })
  const presets = list('presets')
    .map((name) => ({ folder: inPackage('presets', name, 'fixtures'), names: [name] }))
    .filter(({ folder }) => existsSync(folder))
  return [...transforms, ...presets]
}

function list(folder: string): string[] {
  return existsSync(inPackage(folder)) ? readdirSync(inPackage(folder)).toSorted() : []
}

function readFolder(folder: string): Fixture[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return names.toSorted().flatMap((name) => {
    const fixture = parseFixture(readFileSync(join(folder, name), 'utf8'))
    return typeof fixture === 'string' ? [] : [fixture]
  })
}
