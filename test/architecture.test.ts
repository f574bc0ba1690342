// Checks the imports against the table of rooms in src/README.md.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')

/** The rows of the table of rooms, from the highest floor down: `| floor | room | promise | may know | lines |`. */
function readRooms(): { floor: number; room: string; knows: readonly string[]; maxLines: number }[] {
  const page = readFileSync(join(root, 'src/README.md'), 'utf8')
  const [, table = ''] = page.split('<!-- rooms -->')
  const names = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
  return table.split('\n').flatMap((line) => {
    const [, floor = '', room = '', , knows = '', lines = ''] = line.split('|').map((cell) => cell.trim())
    return /^\d+$/.test(floor)
      ? names(room).map((name) => ({
          floor: Number(floor),
          room: name,
          knows: names(knows),
          maxLines: Number(lines.replace(',', '')),
        }))
      : []
  })
}

const rooms = readRooms()

/** The number of functions and constants that are exported only for their tests. It may only become smaller. */
const maxExportsForTests = 23

function filesBelow(dir: string): string[] {
  return readdirSync(join(root, dir), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !name.includes('node_modules'))
    .map((name) => join(dir, name))
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g)].map(([, specifier = '']) =>
    relative(root, resolve(root, dirname(file), specifier)),
  )
}

/** `src/core/mapping/x.ts` is in the room `core/`, `src/gateway/http/x.ts` in `gateway/http/`; `src/app.ts` is a room, and so is `presets/` at the top. */
function roomOf(file: string): string {
  const [top = '', folder = '', ...rest] = file.split('/')
  if (top !== 'src') return `../${top}/`
  if (rest.length === 0) return folder
  if (folder !== 'gateway') return `${folder}/`
  return rest.length > 1 ? `gateway/${rest[0]}/` : `gateway/${rest[0]}`
}

function floorOf(room: string): number {
  return rooms.find((row) => row.room === room)?.floor ?? Number.NaN
}

/** Whether neither folder is inside the other. A folder and the top of its room may import each other. */
function isBeside(one: string, other: string): boolean {
  return !`${one}/`.startsWith(`${other}/`) && !`${other}/`.startsWith(`${one}/`)
}

const files = [...filesBelow('src'), ...filesBelow('presets'), ...filesBelow('transforms')]
const graph = new Map(files.map((file) => [file, importsOf(file)]))

describe('the rooms of src/ and their floors', () => {
  test('the table of rooms in src/README.md has a row for each room', () => {
    expect(rooms.map(({ room }) => room).toSorted()).toEqual([...new Set(files.map(roomOf))].toSorted())
  })

  test('a room imports only from the rooms that its row names', () => {
    const used = rooms.map(({ room }) => {
      const targets = [...graph].flatMap(([file, imports]) => (roomOf(file) === room ? imports.map(roomOf) : []))
      return [room, [...new Set(targets)].filter((target) => target !== room).toSorted()] as const
    })
    expect(Object.fromEntries(used)).toEqual(
      Object.fromEntries(rooms.map(({ room, knows }) => [room, knows.toSorted()])),
    )
  })

  test('a room has at most the lines that its row names', () => {
    const linesOf = (file: string) => readFileSync(join(root, file), 'utf8').split('\n').length - 1
    const styles = readdirSync(join(root, 'src/inspector'), { recursive: true, encoding: 'utf8' })
    const all = [...files, ...styles.filter((name) => name.endsWith('.css')).map((name) => `src/inspector/${name}`)]
    const over = rooms.flatMap(({ room, maxLines }) => {
      const lines = all.reduce((sum, file) => (roomOf(file) === room ? sum + linesOf(file) : sum), 0)
      return lines <= maxLines ? [] : [`${room} has ${lines} lines, and its row names ${maxLines}`]
    })
    expect(over).toEqual([])
  })

  test('a room may import only from rooms on a lower floor', () => {
    const up = rooms.flatMap(({ floor, room, knows }) =>
      knows.filter((known) => !(floorOf(known) < floor)).map((known) => `${room} → ${known}`),
    )
    expect(up).toEqual([])
  })

  test('two folders of one room never import each other', () => {
    const leans = new Set(
      [...graph].flatMap(([file, imports]) =>
        imports
          .filter((target) => roomOf(target) === roomOf(file) && isBeside(dirname(file), dirname(target)))
          .map((target) => `${dirname(file)} → ${dirname(target)}`),
      ),
    )
    const back = (lean: string) => lean.split(' → ').toReversed().join(' → ')
    expect([...leans].filter((lean) => leans.has(back(lean)))).toEqual([])
  })

  test('src/cli/options imports each command at the top of src/cli, and no other folder of src/cli imports one', () => {
    const atTop = (file: string) => dirname(file) === 'src/cli'
    const isOptions = (file: string) => dirname(file) === 'src/cli/options'
    const named = [...graph].flatMap(([file, imports]) => (isOptions(file) ? imports : []))
    const known = new Set([...named, 'src/cli/bin.ts', 'src/cli/main.ts'])
    expect(files.filter((file) => atTop(file) && !known.has(file))).toEqual([])
    const inRooms = [...graph].filter(([file]) => file.startsWith('src/cli/') && !atTop(file) && !isOptions(file))
    expect(inRooms.filter(([, imports]) => imports.some(atTop)).map(([file]) => file)).toEqual([])
  })

  test('presets and bundled transforms import nothing of src/ but define.ts', () => {
    const beyond = [...graph]
      .filter(([file]) => /^(presets|transforms)\//.test(file))
      .flatMap(([file, imports]) =>
        imports.filter((target) => roomOf(target) !== roomOf(file) && target !== 'src/define.ts'),
      )
    expect(beyond).toEqual([])
  })

  test('the core knows base/ only, and has at most 11,500 lines', () => {
    const core = rooms.find(({ room }) => room === 'core/')
    expect(core?.knows).toEqual(['base/'])
    expect(core?.maxLines).toBeLessThanOrEqual(11_500)
  })

  test('a plugin imports nothing of src/ but define.ts and its own kind', () => {
    const beyond = [...graph]
      .filter(([file]) => file.startsWith('src/plugins/') && !file.includes('/shared/'))
      .flatMap(([file, imports]) => {
        const [kind = ''] = /^src\/plugins\/[^/]+\//.exec(file) ?? []
        const own = [`${dirname(file)}/`, `${kind}shared/`]
        return imports.filter((target) => !own.some((place) => target.startsWith(place)) && target !== 'src/define.ts')
      })
    expect(beyond).toEqual([])
  })

  test('the code of the page imports nothing of src/ but the types of the admin API, and how paths and names are written', () => {
    const inside = (file: string) => file.startsWith('src/inspector/')
    const beyond = [...graph]
      .filter(([file]) => inside(file))
      .flatMap(([, imports]) => imports.filter((to) => !inside(to)))
    const isType = (file: string) => file.startsWith('src/model/api/')
    const isText = (file: string) => /^src\/base\/(names|path-text)\.ts$/.test(file)
    expect(beyond.filter((file) => !isType(file) && !isText(file))).toEqual([])
    const types = [...graph].filter(([file]) => isType(file) || isText(file))
    expect(types.flatMap(([, imports]) => imports).filter((file) => !isType(file) && !isText(file))).toEqual([])
  })

  test('no internal module imports src/index.ts, which is for programs that import the package', () => {
    expect([...graph].filter(([, imports]) => imports.includes('src/index.ts')).map(([file]) => file)).toEqual([])
  })

  test('the source has no import cycle', () => {
    const done = new Set<string>()
    const cycles: string[] = []
    const visit = (file: string, trail: readonly string[]): void => {
      if (trail.includes(file)) cycles.push([...trail.slice(trail.indexOf(file)), file].join(' → '))
      if (done.has(file) || trail.includes(file)) return
      for (const target of graph.get(file) ?? []) visit(target, [...trail, file])
      done.add(file)
    }
    for (const file of files) visit(file, [])
    expect(cycles).toEqual([])
  })
})

test('no limit of time is a part of AbortSignal.any, because Node may collect it as garbage', () => {
  const found = files.filter((file) =>
    /AbortSignal\.any\([^;]*AbortSignal\.timeout/.test(
      readFileSync(join(root, file), 'utf8').replaceAll(/^ *(?:\*|\/\/).*$/gm, ''),
    ),
  )
  expect(found).toEqual([])
})

describe('the parts of a part', () => {
  /** The keys of a type of the source that has no other braces, such as `ReceiverParts`. */
  function keysOf(file: string, type: string): string[] {
    const text = readFileSync(join(root, file), 'utf8')
    const [, fields = ''] = new RegExp(`^type ${type} = \\{\\n([^]*?)^\\}`, 'm').exec(text) ?? []
    return [...fields.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, key = '']) => key)
  }

  // what is told of deliveries is in a list of listeners, and no part of those that handle them
  test.each([
    ['src/gateway/http/receive.ts', 'ReceiverParts'],
    ['src/gateway/http/refuse.ts', 'RefuserParts'],
    ['src/gateway/deliveries/arrivals.ts', 'ArrivalsParts'],
    ['src/gateway/deliveries/settle.ts', 'SettlerParts'],
    ['src/gateway/deliveries/rerun.ts', 'RerunnerParts'],
  ])('%s gets at most ten parts', (file, type) => {
    const keys = keysOf(file, type)
    expect(keys.length).toBeGreaterThan(3)
    expect(keys.slice(10)).toEqual([])
  })
})

describe('exported names', () => {
  const texts = files.map((file) => [file, readFileSync(join(root, file), 'utf8')] as const)
  const exported = /^export (?:async )?(?:function|const|let|class|type|interface) (\w+)/gm
  // both engines of the store export what the interface requires, and the function of a command has the name of the command
  const placeOf = (file: string) => file.replace(/^src\/store\/(sqlite|postgres)\/.*/, 'an engine')
  const command = /^src\/cli\/[^/]+\.ts$/

  test('an exported name is declared in one file', () => {
    const declared = new Map<string, Set<string>>()
    for (const [file, text] of texts.filter(([name]) => name.startsWith('src/') && !command.test(name))) {
      for (const [, name = ''] of text.matchAll(exported))
        declared.set(name, (declared.get(name) ?? new Set()).add(placeOf(file)))
    }
    const twice = [...declared].filter(([, places]) => places.size > 1).map(([name]) => name)
    expect(twice).toEqual([])
  })

  // `knip` reports an export that no file imports, but it does not distinguish a test from the package
  test('an exported function or constant is used by another file of the package', () => {
    const users = new Map<string, Set<string>>()
    for (const [file, text] of texts)
      for (const [word] of text.matchAll(/\w+/g)) users.set(word, (users.get(word) ?? new Set()).add(file))
    const unused = texts
      .filter(([file]) => file !== 'src/define.ts')
      .flatMap(([, text]) => [...text.matchAll(exported)])
      .filter(([line, name = '']) => !/ (type|interface) \w+$/.test(line) && users.get(name)?.size === 1)
      .map(([, name]) => name)
    // names instead of a number, so that a failure shows them
    expect(unused.slice(maxExportsForTests)).toEqual([])
  })
})

describe('the modules that a command loads', () => {
  /** The modules that a file imports when it is loaded: no types, and no later `import()`. */
  const loadedBy = (file: string) =>
    [
      ...readFileSync(join(root, file), 'utf8').matchAll(
        /^(?:import|export)\s+(?!type\b)([^'();]*?)\s*from\s+'([^']+)'/gm,
      ),
    ]
      .filter(([, names = '']) => !/^\{(\s*type\s[^,}]+,?)*\s*\}$/.test(names))
      .map(([, , from = '']) => (from.startsWith('.') ? relative(root, resolve(root, dirname(file), from)) : from))

  function allLoadedBy(file: string, seen = new Set<string>()): Set<string> {
    if (seen.has(file)) return seen
    seen.add(file)
    if (file.endsWith('.ts')) for (const next of loadedBy(file)) allLoadedBy(next, seen)
    return seen
  }

  // the schema loads as slowly as all the rest of such a command
  test.each(['main', 'list', 'show', 'events', 'sessions'])(
    'loading the module %s does not load zod, the schema library',
    (name) => {
      const loaded = allLoadedBy(`src/cli/${name}.ts`)
      expect(loaded.size).toBeGreaterThan(10)
      expect([...loaded].filter((module) => module === 'zod')).toEqual([])
    },
  )

  test.each(['index', 'app', 'cli/main', 'cli/doctor'])(
    'loading the module %s does not load the Postgres library',
    (name) => {
      const loaded = allLoadedBy(`src/${name}.ts`)
      expect(loaded.size).toBeGreaterThan(10)
      expect([...loaded].filter((module) => module === 'pg' || module.startsWith('src/store/postgres'))).toEqual([])
    },
  )
})

test('every file that a page for contributors names is there', () => {
  const known = ['.github', 'presets', 'src', 'test', 'transforms'].flatMap((dir) =>
    readdirSync(join(root, dir), { recursive: true, encoding: 'utf8' }).map((name) => `/${dir}/${name}`),
  )
  const pages = ['/src/README.md', '/test/README.md', ...known.filter((path) => path.endsWith('/DECISIONS.md'))]
  const named = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8')
    return [...text.matchAll(/`([\w./-]+\.tsx?|[\w-]+\/[\w./-]+\.md)`/g)].map(([, path = '']) => ({ page, path }))
  })
  expect(named.length).toBeGreaterThan(200)
  expect(named.filter(({ path }) => !known.some((file) => file.endsWith(`/${path}`)))).toEqual([])
})
