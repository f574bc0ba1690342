// The URL of a Postgres database: whether it is one, and what of it may be shown.

const encoded = String.raw`(?:[^\s%@/?#\p{Cc}]|%[\da-f]{2})*`
const host = String.raw`\[[\da-f:.]+\]|[\w.-]*`

/** A character that would end a part too early, such as a slash in a password, must be percent-encoded. */
const form = new RegExp(
  `^postgres(?:ql)?://(?:${encoded}@)?(?<host>(?:${host})(?::\\d{1,5})?)(?:/(?<database>${encoded}))?(?:\\?(?<query>[^\\s@#]*))?$`,
  'iu',
)

export function isPostgresUrl(text: string): boolean {
  return form.test(text)
}

/** `host:port/database`: everything else in the URL may be secret. A text that is no such URL shows nothing of itself. */
export function describeDatabase(url: string): string {
  const { host: named = '', database = '', query = '' } = form.exec(url)?.groups ?? {}
  const socket = new URLSearchParams(query).get('host') ?? 'localhost'
  return `${named === '' ? socket : named}${database === '' ? '' : `/${database}`}`
}
