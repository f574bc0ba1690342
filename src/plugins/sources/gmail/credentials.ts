// The credentials of the mailbox: the key of a service account, or the consent of a person, in a file in state/ that only
// the user of the gateway can read.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { Problem, tryParseJson, type WatchedGmail, writeStateFile } from '../shared/kit.ts'

/** The consent of an account to an OAuth client. All of it is secret. */
const Consent = z.object({
  kind: z.literal('consent'),
  account: z.string(),
  clientId: z.string(),
  clientSecret: z.string().optional(),
  refreshToken: z.string(),
  scopes: z.array(z.string()),
})
export type Consent = z.infer<typeof Consent>

const ServiceAccount = z.object({
  type: z.literal('service_account'),
  client_email: z.string().min(3),
  private_key: z.string().startsWith('-----BEGIN'),
  private_key_id: z.string().optional(),
  project_id: z.string().optional(),
})
export type ServiceAccount = { readonly kind: 'service-account' } & Omit<z.infer<typeof ServiceAccount>, 'type'>

export type Credentials = Consent | ServiceAccount

/** The file that the Cloud Console makes for an OAuth client of the type "Desktop app". */
const ClientFile = z.object({
  installed: z.object({
    client_id: z.string().min(1),
    client_secret: z.string().optional(),
    project_id: z.string().optional(),
  }),
})
export type OAuthClient = { readonly clientId: string; readonly clientSecret: string | undefined }

function toConsentFile(dir: string): string {
  return join(dir, 'state', 'gmail-consent.json')
}

/** Throws `gmail-consent-missing` if there is no consent, or if it belongs to another account, and `config-invalid` for a key that cannot be read. */
export function readCredentials(dir: string, { account, serviceAccountKey }: WatchedGmail): Credentials {
  if (serviceAccountKey !== undefined) return readServiceAccount(resolve(dir, serviceAccountKey))
  const consent = readConsent(dir)
  if (consent === undefined) {
    throw new Problem('gmail-consent-missing', `${account} has not consented yet. Run "hookloom gmail auth".`)
  }
  if (consent.account !== account) {
    throw new Problem(
      'gmail-consent-missing',
      `The stored consent belongs to another account than hooks.gmail.account (${account}). Run "hookloom gmail auth".`,
    )
  }
  return consent
}

/** The stored consent; undefined if there is none, or if the file cannot be read. */
export function readConsent(dir: string): Consent | undefined {
  const text = tryRead(toConsentFile(dir))
  return text === undefined ? undefined : Consent.safeParse(tryParseJson(text)).data
}

export async function writeConsent(dir: string, consent: Consent): Promise<void> {
  const file = toConsentFile(dir)
  await writeStateFile(file, `${JSON.stringify(consent, undefined, 2)}\n`)
}

export function readServiceAccount(file: string): ServiceAccount {
  const parsed = ServiceAccount.safeParse(tryParseJson(readNamedFile(file, 'config-invalid')))
  if (!parsed.success) {
    throw new Problem(
      'config-invalid',
      `${file} is not the key file of a service account. Create one in the Cloud Console: Service accounts, Keys, JSON.`,
    )
  }
  const { type: _, ...key } = parsed.data
  return { kind: 'service-account', ...key }
}

/** Reads the file of an OAuth client. `project`: the project of the client. */
export async function readClientFile(file: string): Promise<OAuthClient & { readonly project: string | undefined }> {
  const parsed = ClientFile.safeParse(tryParseJson(readNamedFile(file, 'usage-invalid')))
  if (!parsed.success) {
    throw new Problem(
      'usage-invalid',
      `${file} is not the file of an OAuth client of type "Desktop app". Create one in the Cloud Console: APIs & Services, Credentials.`,
    )
  }
  const { client_id: clientId, client_secret: clientSecret, project_id: project } = parsed.data.installed
  return { clientId, clientSecret, project }
}

/** Reads a file that the operator named. */
function readNamedFile(file: string, code: 'config-invalid' | 'usage-invalid'): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'it failed'
    throw new Problem(code, `${file} cannot be read: ${reason === 'ENOENT' ? 'the file does not exist' : reason}.`, {
      cause: error,
    })
  }
}

function tryRead(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
