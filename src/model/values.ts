// Values that schemas of several files have in common.
import { z } from 'zod'

/** A text that says something. */
export const filled = z.string().refine((text) => text.trim() !== '', 'must not be blank')

/** A name that a file can have and that leads nowhere else. */
export const fileName = /^[A-Za-z\d][\w.-]{0,99}$/
export const FileName = z.string().regex(fileName, 'must be made of letters, digits, ".", "_" and "-"')

/** Where an API is: an http or https URL without a query, and without the slashes at its end. */
export const httpUrl = z
  .string()
  .regex(/^https?:\/\/[^\s?#]+$/i, 'must be an http or https URL without query')
  .transform((text) => text.replace(/\/+$/, ''))

const networks = [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]

/** IP addresses that belong together: one of them, or a CIDR. */
export const network = z
  .string()
  .refine(
    (text) => networks.some((schema) => schema.safeParse(text).success),
    'must be an IP address or a CIDR such as 10.0.0.0/8',
  )
