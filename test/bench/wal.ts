// Reads the transactions in a WAL file of SQLite: sqlite.org/fileformat2.html, 4.1 and 4.2.
export type Transaction = { readonly pages: number; readonly bytes: number }

const headerBytes = 32
const frameHeaderBytes = 24

/** The transactions since the WAL was last restarted, in the order of their commits. */
export function readTransactions(wal: Buffer): Transaction[] {
  if (wal.length < headerBytes) return []
  const frameBytes = frameHeaderBytes + wal.readUInt32BE(8)
  const salt = wal.readBigUInt64BE(16)
  const transactions: Transaction[] = []
  let pages = 0
  for (let place = headerBytes; place + frameBytes <= wal.length; place += frameBytes) {
    // this frame is from before the last checkpoint
    if (wal.readBigUInt64BE(place + 8) !== salt) break
    pages += 1
    // only the last frame of a commit contains the size of the database
    if (wal.readUInt32BE(place + 4) === 0) continue
    transactions.push({ pages, bytes: pages * frameBytes })
    pages = 0
  }
  return transactions
}
