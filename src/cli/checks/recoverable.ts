// Which senders of the mappings have an API that lists their failed deliveries.
import type { AssembledParts } from '../../gateway/reload/assemble.ts'
import { outboxes } from '../../plugins/outboxes/index.ts'
import type { CheckFinding } from './findings.ts'

/** A sender without a list of its deliveries is no failure: most senders have none. */
export function checkRecoverable({
  mappings,
  senders: table,
  own,
}: Pick<AssembledParts, 'mappings' | 'senders' | 'own'>): CheckFinding[] {
  const known: ReadonlySet<string> = new Set(
    [...outboxes, ...own.outboxes].flatMap(({ name, remembers }) => (remembers ? [name] : [])),
  )
  const asked: ReadonlySet<string> = new Set(mappings.flatMap(({ recover }) => recover?.sender ?? []))
  const named = mappings.flatMap(({ match, verify }) => {
    const signed = table.findScheme(verify?.scheme ?? '')?.source
    return signed ?? (typeof match.source === 'string' ? match.source : [])
  })
  const senders = [...new Set<string>([...asked, ...named])].toSorted()
  const listSenders = (isPicked: (sender: string) => boolean) => senders.filter(isPicked).join(', ')
  const [on, off, never] = [
    listSenders((sender) => asked.has(sender) && known.has(sender)),
    listSenders((sender) => known.has(sender) && !asked.has(sender)),
    listSenders((sender) => !known.has(sender)),
  ]
  const watched = listSenders((sender) => asked.has(sender) && !known.has(sender))
  const details = [
    ...(on === '' ? [] : [`the gateway asks for what they could not deliver: ${on}`]),
    ...(off === '' ? [] : [`could be asked, if their mappings had "recover": ${off}`]),
    ...(watched === '' ? [] : [`the gateway asks whether their subscriptions are still there: ${watched}`]),
    ...(never === '' ? [] : [`not recoverable, because they keep no list of their deliveries: ${never}`]),
  ]
  return details.map((detail) => ({ name: 'recover', ok: true, detail }))
}
