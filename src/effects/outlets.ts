// The runners and channels that a configuration names: made when a job first asks, kept until the configuration changes.
import type { Channel } from '../model/channel.ts'
import type { Config } from '../model/config.ts'
import type { Runner } from '../model/runner.ts'
import { createConsoleChannel } from './channels/console.ts'
import { createEchoRunner } from './runners/echo.ts'

export type Outlets = {
  /** By name; undefined where there is none of this name. */
  runner(name: string): Runner | undefined
  /** By name; a channel that is not in it is not configured. */
  readonly channels: ReadonlyMap<string, Channel>
}

export type OutletTools = {
  /** Where the console channel writes. */
  readonly write: (text: string) => void
  /** What commands may be given of it, by name. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Gives back the same outlets for the same configuration. */
export function createOutlets(tools: OutletTools): (config: Config) => Outlets {
  const made = new WeakMap<Config, Outlets>()
  return (config) => {
    const outlets = made.get(config) ?? toOutlets(config, tools)
    made.set(config, outlets)
    return outlets
  }
}

function toOutlets(_config: Config, { write }: OutletTools): Outlets {
  const runners = new Map<string, Runner>([['echo', createEchoRunner()]])
  return {
    runner: (name) => runners.get(name),
    channels: new Map<string, Channel>([['console', createConsoleChannel({ write })]]),
  }
}
