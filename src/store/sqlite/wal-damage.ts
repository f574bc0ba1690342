// Finds commits that the write-ahead log of a gateway that was killed has lost. SQLite reads the log up to the first frame that does not have its checksum,
// and drops the rest without a word, because a loss of power may leave such a frame in the last commit. Two things show that more was there: a later
// commit, which is only written after the fsync of the one before it, and the index of the log (-shm), which counts a commit after its fsync.
// The format: https://www.sqlite.org/walformat.html.
import { copyFileSync, readFileSync } from 'node:fs'
import { describeFile } from './files.ts'

const headerBytes = 32
const frameHeaderBytes = 24

type Log = {
  readonly bytes: Buffer
  readonly salts: Buffer
  readonly frameBytes: number
  readonly isHeaderIntact: boolean
}

/** What is wrong with the log; undefined if nothing is. No connection of this process may be open: to close the -shm would drop its locks. */
export function findWalDamage(file: string): string | undefined {
  const index = readIfThere(`${file}-shm`)
  const bytes = readIfThere(`${file}-wal`)
  const counted = index === undefined ? undefined : readIndex(index)
  if (bytes === undefined || bytes.length < headerBytes + frameHeaderBytes)
    return counted !== undefined && counted.frames > 0 ? describeLoss(0, counted.frames) : undefined
  const log = readLog(bytes)
  const intact = countCommitted(log)
  if (counted !== undefined && counted.frames > intact && counted.salts.equals(log.salts))
    return describeLoss(intact, counted.frames)
  const durable = countDurable(log)
  return durable > intact ? describeLoss(intact, durable) : undefined
}

/** Copies a damaged log before SQLite drops what it cannot read. Returns what an operator must know; undefined if the log is intact. */
export function saveDamagedWal(file: string, now: number): string | undefined {
  const damage = findWalDamage(file)
  if (damage === undefined) return undefined
  const name = `${describeFile(file)}: ${damage}`
  const next = 'Requests that were answered with 200 may be missing: let their senders send them again.'
  const copy = `${file}-wal.damaged-${now}`
  try {
    copyFileSync(`${file}-wal`, copy)
    return `${name}. The log was copied to ${describeFile(copy)}. ${next}`
  } catch {
    return `${name}. ${next}`
  }
}

function describeLoss(intact: number, written: number): string {
  return `its write-ahead log is damaged: of at least ${written} pages of commits, only the first ${intact} can be read`
}

function readIfThere(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch {
    // without the file there is nothing to say; if it cannot be read, SQLite says why
    return undefined
  }
}

/** The pages that the index counts and that are not in the database yet; undefined if the index is not complete. */
function readIndex(index: Buffer): { readonly frames: number; readonly salts: Buffer } | undefined {
  if (index.length < 136) return undefined
  const header = index.subarray(0, 48)
  // both copies are equal, except while a commit writes them
  if (!header.equals(index.subarray(48, 96)) || header[12] !== 1) return undefined
  const [first, second] = sum(header.subarray(0, 40), [0, 0], true)
  if (header.readUInt32LE(40) !== first || header.readUInt32LE(44) !== second) return undefined
  const frames = header.readUInt32LE(16)
  return { frames: index.readUInt32LE(96) >= frames ? 0 : frames, salts: header.subarray(32, 40) }
}

function readLog(bytes: Buffer): Log {
  const isLittle = (bytes.readUInt32BE(0) & 1) === 0
  const [first, second] = sum(bytes.subarray(0, 24), [0, 0], isLittle)
  const isHeaderIntact =
    bytes.readUInt32BE(0) >>> 1 === 0x377f0682 >>> 1 &&
    bytes.readUInt32BE(24) === first &&
    bytes.readUInt32BE(28) === second
  // a damaged header does not name the salts; the first frame has them too
  const salts = isHeaderIntact ? bytes.subarray(16, 24) : bytes.subarray(headerBytes + 8, headerBytes + 16)
  const pageBytes = bytes.readUInt32BE(8)
  const frameBytes = frameHeaderBytes + (pageBytes >= 512 && pageBytes <= 65_536 ? pageBytes : 2_048)
  return { bytes, salts, frameBytes, isHeaderIntact }
}

function* listFrames({ bytes, frameBytes }: Log): Generator<Buffer> {
  for (let at = headerBytes; at + frameBytes <= bytes.length; at += frameBytes)
    yield bytes.subarray(at, at + frameBytes)
}

const isCommit = (frame: Buffer) => frame.readUInt32BE(4) > 0

/** The frames up to the last commit that SQLite reads. */
function countCommitted(log: Log): number {
  if (!log.isHeaderIntact) return 0
  const isLittle = (log.bytes.readUInt32BE(0) & 1) === 0
  let sums: Sums = [log.bytes.readUInt32BE(24), log.bytes.readUInt32BE(28)]
  let committed = 0
  let place = 0
  for (const frame of listFrames(log)) {
    place += 1
    sums = sum(frame.subarray(frameHeaderBytes), sum(frame.subarray(0, 8), sums, isLittle), isLittle)
    const isIntact = frame.readUInt32BE(16) === sums[0] && frame.readUInt32BE(20) === sums[1]
    if (!isIntact || !frame.subarray(8, 16).equals(log.salts)) return committed
    if (isCommit(frame)) committed = place
  }
  return committed
}

/** The frames up to the last commit that a later frame follows: it was durable before that frame was written. */
function countDurable(log: Log): number {
  let last = 0
  let durable = 0
  let place = 0
  for (const frame of listFrames(log)) {
    place += 1
    if (!frame.subarray(8, 16).equals(log.salts)) continue
    durable = last
    if (isCommit(frame)) last = place
  }
  return durable
}

type Sums = readonly [number, number]

/** SQLite's checksum of pairs of 32-bit words. */
function sum(bytes: Buffer, [first, second]: Sums, isLittle: boolean): Sums {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let [one, two] = [first, second]
  for (let at = 0; at < bytes.length; at += 8) {
    one = (one + view.getUint32(at, isLittle) + two) >>> 0
    two = (two + view.getUint32(at + 4, isLittle) + one) >>> 0
  }
  return [one, two]
}
