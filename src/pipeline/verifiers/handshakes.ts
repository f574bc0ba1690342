// Every handshake by the name that a row of the table gives it. Shapes are from the senders' documentation.
import { callbackHandshakes } from './handshakes-callback.ts'
import { queryHandshakes } from './handshakes-query.ts'
import type { Handshake } from './handshake.ts'

const all = { ...queryHandshakes, ...callbackHandshakes } as const

export type HandshakeName = keyof typeof all

export const handshakes: Readonly<Record<HandshakeName, Handshake>> = all
