// What a process wrote to its disk and what it answered, in the order of its system calls; and the disks that a loss of power may leave of it.
// The disk is the weakest that POSIX allows: what no fsync covers is there in part, in any order, torn at sectors, or not at all; a new or a
// removed name is sure only after an fsync of its folder.
import { writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

const calls = 'openat,mkdir,pwrite64,write,writev,ftruncate,fsync,fdatasync,unlink,unlinkat'

/** Options of strace that record a history. */
export const straceOptions = (file: string): string[] => [
  '-f',
  '-y',
  '-xx',
  '-s',
  '1000000',
  '-o',
  file,
  '-e',
  'signal=none',
  '-e',
  `trace=${calls}`,
]

type Change =
  | { readonly kind: 'write'; readonly offset: number; readonly data: Buffer }
  | { readonly kind: 'truncate'; readonly size: number }

/** `began`: the number of events before the call of an fsync, which need not cover what came after it. */
export type DiskEvent =
  | (Extract<Change, { kind: 'write' }> & { readonly file: string })
  | (Extract<Change, { kind: 'truncate' }> & { readonly file: string })
  | { readonly kind: 'create'; readonly file: string }
  | { readonly kind: 'remove'; readonly file: string }
  | { readonly kind: 'sync'; readonly file: string; readonly began: number }
  | { readonly kind: 'answer'; readonly deliveryId: string }

const decode = (text: string) => Buffer.from(text.replaceAll('\\x', ''), 'hex')
const readStrings = (text: string) =>
  Array.from(text.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g), ([, each = '']) => decode(each))

const httpAnswer = /^HTTP\/1\.1 200 .*"deliveryId":"([^"]+)"/s

/**
 * The events of the wanted files and folders, and the answers, from the lines of strace. `answer`: finds the id in an answer. `before`: what was there
 * when strace began; the process appends to the files in it.
 */
export function readHistory(
  lines: readonly string[],
  isWanted: (file: string) => boolean,
  { answer = httpAnswer, before = [] }: { answer?: RegExp; before?: readonly DiskEvent[] } = {},
): DiskEvent[] {
  const events = [...before]
  const sizes = new Map(before.flatMap((event) => (event.kind === 'write' ? [[event.file, event.data.length]] : [])))
  const note = (call: string, began: number) => {
    const event = readCall(call, { began, answer, sizes })
    if (event === undefined) return
    if (event.kind === 'answer' || isWanted(event.file)) events.push(event)
  }
  const begun = new Map<string, { text: string; began: number }>()
  // a write counts from its begin, because it may reach the disk at once; an fsync counts from its end
  const isLate = (call: string) => /^(?:f(?:data)?sync|openat|mkdir)\(/.test(call)
  for (const line of lines) {
    const [, thread = '', call = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const start = call.endsWith(' <unfinished ...>') ? call.slice(0, -' <unfinished ...>'.length) : undefined
    const [, rest] = /^<\.\.\. \w+ resumed>(.*)$/.exec(call) ?? []
    if (start !== undefined) {
      begun.set(thread, { text: start, began: events.length })
      if (!isLate(start)) note(start, events.length)
    } else if (rest === undefined) note(call, events.length)
    else {
      const { text = '', began = events.length } = begun.get(thread) ?? {}
      if (isLate(text)) note(text + rest, began)
    }
  }
  return events
}

type Reading = { readonly began: number; readonly answer: RegExp; readonly sizes: Map<string, number> }

function readCall(call: string, { began, answer, sizes }: Reading): DiskEvent | undefined {
  const [, name = '', args = ''] = /^(\w+)\((.*)$/s.exec(call) ?? []
  if (/\) += -1 /.test(args)) return undefined
  const [text = Buffer.alloc(0)] = readStrings(args)
  const open = decode(/^\d+<((?:\\x[0-9a-f]{2})+)>/.exec(args)?.[1] ?? '').toString()
  switch (name) {
    case 'pwrite64':
      return { kind: 'write', file: open, data: text, offset: Number(/, \d+, (\d+)\)?(?: += .*)?$/.exec(args)?.[1]) }
    case 'ftruncate':
      return { kind: 'truncate', file: open, size: Number.parseInt(/, (0x[\da-f]+|\d+)/.exec(args)?.[1] ?? '') }
    case 'fsync':
    case 'fdatasync':
      return { kind: 'sync', file: open, began }
    case 'openat':
      return args.includes('O_CREAT') ? { kind: 'create', file: text.toString() } : undefined
    case 'mkdir':
      return { kind: 'create', file: text.toString() }
    case 'unlink':
    case 'unlinkat':
      return { kind: 'remove', file: text.toString() }
    default: {
      const data = Buffer.concat(readStrings(args))
      const offset = sizes.get(open)
      if (offset !== undefined) {
        sizes.set(open, offset + data.length)
        return { kind: 'write', file: open, data, offset }
      }
      const id = answer.exec(data.toString())?.[1]
      return id === undefined ? undefined : { kind: 'answer', deliveryId: id }
    }
  }
}

type Loss = { readonly answered: ReadonlySet<string>; readonly write: (folder: string) => void }

/** Loses the power at `count` random events. `write` puts the disk that is left into a folder, before the next loss. */
export function* losePower(
  history: readonly DiskEvent[],
  { folder, count, pick }: { folder: string; count: number; pick: Pick },
): Generator<Loss> {
  const places = new Map<number, number>()
  for (let each = 0; each < count; each += 1) {
    const place = pick(history.length)
    places.set(place, (places.get(place) ?? 0) + 1)
  }
  const disk = createDisk(folder)
  const answered = new Set<string>()
  for (const [at, event] of history.entries()) {
    disk.apply(event)
    if (event.kind === 'answer') answered.add(event.deliveryId)
    for (let each = places.get(at) ?? 0; each > 0; each -= 1) yield { answered, write: (to) => disk.write(to, pick) }
  }
}

/** The bytes of a file, in a buffer that may be longer. */
type Content = { bytes: Buffer; size: number }
type Inode = { readonly flushed: Content; pending: { readonly at: number; readonly change: Change }[] }
/** A name may still lead to its `sure` file, or already to the `next` one. */
type Name = { sure: Inode | undefined; next: Inode | undefined; changedAt: number }

const sectorBytes = 512

/** `pick(n)`: a whole number from 0 to n - 1. */
type Pick = (limit: number) => number

/** Plays a history, and writes disks that a loss of power after the latest event may leave. */
function createDisk(folder: string) {
  const names = new Map<string, Name>()
  let count = 0

  const findName = (file: string): Name => {
    const name = names.get(file) ?? { sure: undefined, next: undefined, changedAt: 0 }
    names.set(file, name)
    return name
  }

  function apply(event: DiskEvent): void {
    const at = count
    count += 1
    if (event.kind === 'answer') return
    const name = findName(event.file)
    if (event.kind === 'create') {
      if (name.next !== undefined) return
      name.next = { flushed: { bytes: Buffer.alloc(0), size: 0 }, pending: [] }
      name.changedAt = at
    } else if (event.kind === 'remove') {
      name.next = undefined
      name.changedAt = at
    } else if (event.kind === 'write' || event.kind === 'truncate') name.next?.pending.push({ at, change: event })
    else if (event.file === folder || event.file === dirname(folder)) {
      for (const [file, each] of names)
        if (dirname(file) === event.file && each.changedAt < event.began) each.sure = each.next
    } else if (name.next !== undefined) {
      const { flushed, pending } = name.next
      for (const { at: changedAt, change } of pending) if (changedAt < event.began) applyChange(flushed, change)
      name.next.pending = pending.filter((each) => each.at >= event.began)
    }
  }

  function write(to: string, pick: Pick): void {
    const how = (['nothing', 'all', 'first', 'sectors'] as const)[pick(4)] ?? 'nothing'
    if (how !== 'all' && names.get(folder)?.sure === undefined && pick(2) === 0) return
    for (const [file, { sure, next }] of names) {
      const inode = how === 'all' || (how !== 'nothing' && pick(2) === 0) ? next : sure
      if (inode === undefined || dirname(file) !== folder) continue
      const { flushed, pending } = inode
      const content = { bytes: Buffer.from(flushed.bytes.subarray(0, flushed.size)), size: flushed.size }
      const reached = how === 'nothing' ? 0 : how === 'first' ? pick(pending.length + 1) : pending.length
      const isWritten = how === 'sectors' ? () => pick(2) === 0 : undefined
      for (const { change } of pending.slice(0, reached)) applyChange(content, change, isWritten)
      writeFileSync(join(to, basename(file)), content.bytes.subarray(0, content.size))
    }
  }

  return { apply, write }
}

/** `isWritten` decides of each sector whether it reaches the disk. */
function applyChange(content: Content, change: Change, isWritten = () => true): void {
  if (change.kind === 'truncate') {
    if (!isWritten()) return
    content.bytes.fill(0, Math.min(change.size, content.size))
    grow(content, change.size)
    content.size = change.size
    return
  }
  const end = change.offset + change.data.length
  grow(content, end)
  for (let from = change.offset; from < end;) {
    const to = Math.min(end, (Math.floor(from / sectorBytes) + 1) * sectorBytes)
    if (isWritten()) change.data.copy(content.bytes, from, from - change.offset, to - change.offset)
    from = to
  }
}

function grow(content: Content, size: number): void {
  if (size > content.bytes.length) content.bytes = Buffer.concat([content.bytes, Buffer.alloc(size)])
  content.size = Math.max(content.size, size)
}
