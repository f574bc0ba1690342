// Code of integrators behind a section of the configuration.
import type { ProblemRecord } from '../core/model/problem.ts'

/** `label`: the file of the code, for messages. `broken`: what the section asks for waits until the code is corrected. */
export type OwnCode<Definition> = { readonly label: string } & (
  | {
      readonly kind: 'sound'
      readonly definition: Definition
      /** The options that the schema returned. */
      readonly options: unknown
      /** The hash of the code. */
      readonly hash: string
      /** Describes an exception with its place: `a TypeError at zulip.ts:12`. */
      describeThrown(thrown: unknown): string
    }
  | { readonly kind: 'broken'; readonly problem: ProblemRecord }
)
