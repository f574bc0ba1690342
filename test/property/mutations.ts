// Seeded cases for the campaigns of `fuzz.test.ts`: a valid input is changed in a few places, and a check names what is wrong with the outcome.
import { createRandom } from '../contract/interleaved.ts'

export type Chance = {
  /** A whole number below `limit`. */
  below(limit: number): number
  pick<T>(from: readonly T[]): T
  /** The text with 1 to `most` changes: pieces put in, taken out, replaced, repeated or moved. */
  mutate(text: string, pieces: readonly string[], most?: number): string
}

function createChance(seed: number): Chance {
  const random = createRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const pick = <T>(from: readonly T[]): T => {
    const [found] = from.slice(below(from.length))
    // as: no list here is empty
    return found as T
  }
  /** Any character, those that change how a text is read more often than others. */
  const pickCharacter = () =>
    String.fromCharCode(pick([below(32), below(256), 0xd800 + below(0x800), 0x200b + below(8), 0x202a + below(5)]))

  function change(text: string, pieces: readonly string[]): string {
    const at = below(text.length + 1)
    const [before, after] = [text.slice(0, at), text.slice(at)]
    const length = 1 + below(5)
    switch (below(8)) {
      case 0:
        return before + after.slice(length)
      case 1:
        return before + pick(pieces) + after.slice(length)
      case 2:
        return before + text.slice(below(text.length)).slice(0, 30) + after
      case 3:
        return before
      case 4:
        return before + pick(pieces).repeat(1 + below(40)) + after
      case 5:
        return before + pickCharacter() + after.slice(1)
      default:
        return before + pick(pieces) + after
    }
  }

  return {
    below,
    pick,
    mutate: (text, pieces, most = 4) =>
      Array.from({ length: 1 + below(most) }).reduce<string>((changed) => change(changed, pieces), text),
  }
}

/** One target of a campaign. `tryOne` makes a case, and returns what is wrong; undefined if nothing is. */
export type Target = {
  readonly name: string
  /** The cases of the short form. */
  readonly cases: number
  tryOne(chance: Chance): Promise<string | undefined> | string | undefined
}

/** A fault in words that show the input of the case. */
export function describeFault(what: string, input: unknown): string {
  return `${what}: ${JSON.stringify(input)}`
}

/** What `work` throws if it is not `allowed`, as a fault; undefined for any other outcome. */
export async function findThrown(
  work: () => unknown,
  input: unknown,
  allowed: (thrown: unknown) => boolean = () => false,
): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (thrown) {
    return allowed(thrown) ? undefined : describeFault(`threw ${String(thrown)}`, input)
  }
}

/** Runs cases until one has a fault, or `goesOn` is false. */
export async function runCampaign(
  target: Target,
  { seed, goesOn }: { readonly seed: number; readonly goesOn: (done: number) => boolean },
): Promise<{ readonly done: number; readonly fault: string | undefined }> {
  const chance = createChance(seed)
  for (let done = 0; ; done += 1) {
    if (!goesOn(done)) return { done, fault: undefined }
    const fault = await target.tryOne(chance)
    if (fault !== undefined) return { done: done + 1, fault: `case ${done + 1}: ${fault}` }
  }
}
