// The URL of a Postgres database: checks its form, and selects the parts that may be shown.

const encoded = String.raw`(?:[^\s%@/?#\p{Cc}]|%[\da-f]{2})*`
const hostName = String.raw`\[[\da-f:.]+\]|[\w.-]*`

/** The URLs that are accepted. A character that would end a part too early, such as a slash in a password, must be percent-encoded. */
const form = new RegExp(
  `^postgres(?:ql)?://(?:${encoded}@)?(?<name>${hostName})(?::(?<port>\\d{1,5}))?(?:/(?<database>${encoded}))?(?:\\?(?<query>[^\\s@#]*))?$`,
  'iu',
)

export function isPostgresUrl(text: string): boolean {
  return form.test(text)
}

/** `host:port/database`: all other parts of the URL may be secret. No part of an invalid URL is shown. */
export function describeDatabase(url: string): string {
  const { name = '', port: givenPort, database = '', query = '' } = form.exec(url)?.groups ?? {}
  // the driver prefers the host and the port of the parameters, such as the folder of a socket
  const parameters = new URLSearchParams(query)
  const host = parameters.get('host') ?? (name === '' ? 'localhost' : name)
  const port = parameters.get('port') ?? givenPort
  return `${host}${port === undefined ? '' : `:${port}`}${database === '' ? '' : `/${database}`}`
}
