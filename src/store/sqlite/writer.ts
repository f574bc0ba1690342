// The writer thread. It owns the file, and executes one batch at a time. Only a lone operation may be committed elsewhere: see direct.ts.
import { parentPort, workerData } from 'node:worker_threads'
import { runBatch, toOperationFailure } from './batch.ts'
import { classifyError } from './driver.ts'
import { probeDiskSpace, readSize } from './files.ts'
import type { OpenedFile, Operation, OperationResult, BatchReply, Request, WriterOptions } from './operations.ts'
import { createWriterConnection } from './owner.ts'

/** After this time without a batch, the writer checkpoints a long WAL: a checkpoint in a pause delays no batch. */
const pauseMs = 200
/** A WAL longer than this is checkpointed in a pause. */
const longWalBytes = 4 * 1024 * 1024

// as: queue.ts starts this thread with these options
const options = workerData as WriterOptions
const connection = createWriterConnection(options)
const sleeper = new Int32Array(new SharedArrayBuffer(4))
let pause: NodeJS.Timeout | undefined

function beforeCommit(): void {
  if (options.commitDelayMs > 0) Atomics.wait(sleeper, 0, 0, options.commitDelayMs)
}

function answer(operations: readonly Operation[]): BatchReply {
  let opened: OpenedFile | undefined
  const startedAt = performance.now()
  try {
    const acquired = connection.acquire()
    opened = acquired.opened
    // on a full disk SQLite can still overwrite existing pages, so a successful write alone does not prove that there is room
    if (operations.some(({ kind }) => kind === 'probe')) probeDiskSpace(options.file)
    const { outcomes, waitingChange } = runBatch({ db: acquired.db, operations, beforeCommit, isBulk: true })
    const result = { outcomes: outcomes.every(isStored) ? undefined : outcomes, waitingChange }
    return { opened, tookMs: performance.now() - startedAt, result }
  } catch (error) {
    if (classifyError(error)?.reopen) connection.reset()
    return { opened, tookMs: performance.now() - startedAt, result: { failure: toOperationFailure(error) } }
  }
}

/** The usual outcome needs no object in the reply. */
function isStored(outcome: OperationResult): boolean {
  const { value } = outcome.ok ? outcome : {}
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'stored'
}

function checkpoint(): void {
  try {
    if (readSize(`${options.file}-wal`) > longWalBytes) connection.acquire().db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  } catch {
    // the next batch fails too, and reports it
  }
}

parentPort?.on('message', (request: Request) => {
  clearTimeout(pause)
  if (request.kind === 'close') {
    connection.close()
    parentPort?.close()
    return
  }
  const reply: BatchReply = answer(request.operations)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port, not a window
  parentPort?.postMessage(reply)
  pause = setTimeout(checkpoint, pauseMs)
})
