// The rights of a token.
import { z } from 'zod'

/** Rights on the admin port. Each right includes the rights before it. */
export const adminRights = ['read', 'operate', 'admin'] as const
export type AdminRight = (typeof adminRights)[number]

const sendForm = /^send:(?!\/)[^\s?#]{1,512}(?<!\/)$/

/**
 * `send:<pattern>` and `runs` are rights on the hook port: to send to the hooks whose names match, and to see and cancel the runs that the token
 * itself started.
 */
const Right = z
  .string()
  .refine(
    (text) => text === 'runs' || adminRights.some((right) => right === text) || sendForm.test(text),
    'must be read, operate, admin, runs, or send:<hook> such as send:deploy or send:ci-*',
  )

export const Rights = z.array(Right).min(1).max(100)
