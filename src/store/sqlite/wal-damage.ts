// Finds commits that the write-ahead log of a gateway that was killed has lost. SQLite reads the log up to the first frame that does not have its checksum,
// and drops the rest without a word, because a loss of power may leave such a frame in the last commit. Two things show that more was there: a later
// commit, which is only written after the fsync of the one before it, and the index of the log (-shm), which counts a commit after its fsync.
// The format: https://www.sqlite.org/walformat.html.
import { closeSync, copyFileSync, openSync, readFileSync, readSync } from 'node:fs'
import { describeFile } from './files.ts'

const headerBytes = 32
const frameHeaderBytes = 24
/** What is in memory of a log at once; a whole one may have gigabytes. */
const pieceBytes = 4 * 1024 * 1024

/** What is wrong with the log; undefined if nothing is. No connection of this process may be open: to close the -shm would drop its locks. */
export function findWalDamage(file: string): string | undefined {
  const log = scanLog(`${file}-wal`)
  if (log === 'unreadable') return undefined
  const index = readIndex(`${file}-shm`)
  const counted = index === undefined || (log.salts && !index.salts.equals(log.salts)) ? 0 : index.frames
  const written = Math.max(counted, log.durable)
  return written > log.intact ? describeLoss(log.intact, written) : undefined
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

/** The pages that the index counts and that are not in the database yet; undefined if there is no complete index. */
function readIndex(file: string): { readonly frames: number; readonly salts: Buffer } | undefined {
  let index: Buffer
  try {
    index = readFileSync(file)
  } catch {
    return undefined
  }
  if (index.length < 136) return undefined
  const header = index.subarray(0, 48)
  // both copies are equal, except while a commit writes them
  if (!header.equals(index.subarray(48, 96)) || header[12] !== 1) return undefined
  const [first, second] = sum(header.subarray(0, 40), [0, 0], true)
  if (header.readUInt32LE(40) !== first || header.readUInt32LE(44) !== second) return undefined
  const frames = header.readUInt32LE(16)
  return { frames: index.readUInt32LE(96) >= frames ? 0 : frames, salts: header.subarray(32, 40) }
}

type Scan = {
  /** The frames up to the last commit that SQLite reads. */
  intact: number
  /** The frames up to the last commit that a later frame follows: it was durable before that frame was written. */
  durable: number
  /** Undefined if the log has no frame. */
  readonly salts: Buffer | undefined
}

/** Unreadable: the system refuses to read it, and SQLite will say why. */
function scanLog(file: string): Scan | 'unreadable' {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (thrown) {
    const isMissing = thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT'
    return isMissing ? { intact: 0, durable: 0, salts: undefined } : 'unreadable'
  }
  try {
    return scanFrames(fd)
  } catch {
    return 'unreadable'
  } finally {
    closeSync(fd)
  }
}

function scanFrames(fd: number): Scan {
  const header = readPiece(fd, headerBytes + frameHeaderBytes, 0)
  if (header.length < headerBytes + frameHeaderBytes) return { intact: 0, durable: 0, salts: undefined }
  const isLittle = (header.readUInt32BE(0) & 1) === 0
  let sums = sum(header.subarray(0, 24), [0, 0], isLittle)
  let isIntact = header.readUInt32BE(0) >>> 1 === 0x377f0682 >>> 1 && isSum(header.subarray(24, 32), sums)
  // a damaged header does not name the salts; the first frame has them too
  const salts = Buffer.from(isIntact ? header.subarray(16, 24) : header.subarray(headerBytes + 8, headerBytes + 16))
  const found: Scan = { intact: 0, durable: 0, salts }
  let place = 0
  let last = 0
  for (const frame of listFrames(fd, header.readUInt32BE(8))) {
    place += 1
    const isOfLog = frame.subarray(8, 16).equals(salts)
    if (isIntact) {
      sums = sum(frame.subarray(frameHeaderBytes), sum(frame.subarray(0, 8), sums, isLittle), isLittle)
      isIntact = isOfLog && isSum(frame.subarray(16, 24), sums)
    }
    if (!isOfLog) continue
    found.durable = last
    if (!isCommit(frame)) continue
    last = place
    if (isIntact) found.intact = place
  }
  return found
}

function* listFrames(fd: number, pageBytes: number): Generator<Buffer> {
  const frameBytes = frameHeaderBytes + (pageBytes >= 512 && pageBytes <= 65_536 ? pageBytes : 2_048)
  const wholeBytes = frameBytes * Math.floor(pieceBytes / frameBytes)
  for (let start = headerBytes; ; start += wholeBytes) {
    const piece = readPiece(fd, wholeBytes, start)
    for (let at = 0; at + frameBytes <= piece.length; at += frameBytes) yield piece.subarray(at, at + frameBytes)
    if (piece.length < wholeBytes) return
  }
}

/** Shorter at the end of the file. */
function readPiece(fd: number, bytes: number, start: number): Buffer {
  const piece = Buffer.allocUnsafe(bytes)
  return piece.subarray(0, readSync(fd, piece, 0, bytes, start))
}

const isCommit = (frame: Buffer) => frame.readUInt32BE(4) > 0
const isSum = (stored: Buffer, [first, second]: Sums) =>
  stored.readUInt32BE(0) === first && stored.readUInt32BE(4) === second

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
