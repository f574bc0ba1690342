// The entry point of a thread in which transforms run.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setFlagsFromString } from 'node:v8'
import { workerData } from 'node:worker_threads'
import { guardProcess, type OpenCall } from './guard.ts'
import { createIntrinsics } from './intrinsics.ts'
import { createMemoryLimit } from './memory.ts'
import { type FromWorker, readThreadId, type ToWorker, type WorkerStart } from './messages.ts'
import { createThreadServer } from './serve.ts'
import { installProvided } from '../modules/provided.ts'

// as: only thread.ts starts this thread, with this data
const { sharedState, memoryMb, port, measures, isShadow } = workerData as WorkerStart
// transforms can import workerData
Reflect.deleteProperty(workerData, 'port')

// V8 would keep the source of all evaluated code without using it: 0.4 MB for each reload of 200 kB
setFlagsFromString('--no-compilation-cache')

const calls = new AsyncLocalStorage<OpenCall>()
const post = port.postMessage.bind(port)
const intrinsics = createIntrinsics()
await installProvided()
const coverage = measures ? (await import('./coverage.ts')).startCoverage() : undefined
const serving = createThreadServer({
  post: (message: FromWorker) => post(message),
  sharedState: new Int32Array(sharedState),
  calls,
  intrinsics,
  memory: createMemoryLimit(memoryMb),
  coverage,
})
guardProcess({ calls, leave: serving.exit })
if (isShadow) (await import('./effects.ts')).blockEffects()
intrinsics.accept()
process.on('uncaughtException', serving.uncaught)
port.on('message', (message: ToWorker) => serving.receive(message))
post({ kind: 'ready', systemId: readThreadId() } satisfies FromWorker)
