// The child processes of the bench. They are compiled once, with esbuild, so that no loader affects the figures.
import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build, type BuildOptions } from 'esbuild'
import { type StandIn, standIns } from './gateway.ts'

export type Child<Ask, Reply> = {
  /** Sends one question at a time. Rejects with the failure that the child reports, or if the child ends. */
  ask(question: Ask): Promise<Reply>
  readonly pid: number
  kill(): Promise<void>
}

const root = resolve(import.meta.dirname, '../..')
const options = {
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20',
  logLevel: 'error',
} satisfies BuildOptions

/** Compiles the entries of the children, and the gateway with each stand-in, below the package, where dependencies
 * resolve. */
export async function compileChildren(folder: string): Promise<void> {
  await build({
    ...options,
    entryPoints: ['server.ts', 'load.ts', 'probe.ts', 'queue.ts'].map((name) => join(import.meta.dirname, name)),
    outdir: folder,
    outExtension: { '.js': '.mjs' },
  })
  await Promise.all(standIns.map((name) => compileStandIn(folder, name)))
  // a gateway finds the files of its threads by the names in package.json
  const { imports }: { imports: object } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', imports }))
  symlinkSync(join(root, 'dist'), join(folder, 'dist'))
  symlinkSync(join(import.meta.dirname, 'peers'), join(folder, 'peers'))
}

/** Compiles the gateway with a stand-in for its runtime of transforms. */
async function compileStandIn(folder: string, name: StandIn): Promise<void> {
  await build({
    ...options,
    entryPoints: [join(root, 'src/index.ts')],
    outfile: join(folder, `${name}.mjs`),
    plugins: [
      {
        name,
        setup: ({ onResolve }) =>
          onResolve({ filter: /\/transforms\/runtime\.ts$/ }, ({ importer }) =>
            importer.startsWith(import.meta.dirname)
              ? undefined
              : { path: join(import.meta.dirname, `${name}-runtime.ts`) },
          ),
      },
    ],
  })
}

/** Starts a compiled child. `first`: the first message of the child, which says that it is ready. */
export async function startChild<Ask extends object | string, Reply>(
  file: string,
  args: readonly string[],
): Promise<{ child: Child<Ask, Reply>; first: Reply }> {
  const process = fork(file, [...args], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    // JSON has no Infinity, which is a figure of what never happened
    serialization: 'advanced',
  })
  const child: Child<Ask, Reply> = {
    pid: process.pid ?? 0,
    ask: (question) => {
      const reply = waitForReply<Reply>(process)
      process.send(question)
      return reply
    },
    kill: () =>
      new Promise((resolve) => {
        if (process.exitCode !== null || process.signalCode !== null) return resolve()
        process.once('exit', () => resolve())
        process.kill('SIGKILL')
      }),
  }
  try {
    return { child, first: await waitForReply<Reply>(process) }
  } catch (error) {
    // a child that still runs would keep the bench from ending
    await child.kill()
    throw error
  }
}

function waitForReply<Reply>(process: ChildProcess): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`A child of the bench ended with ${code}.`))
    process.once('exit', onExit)
    process.once('message', (message: { result: Reply } | { failure: string }) => {
      process.off('exit', onExit)
      if ('failure' in message) reject(new Error(message.failure))
      else resolve(message.result)
    })
  })
}
