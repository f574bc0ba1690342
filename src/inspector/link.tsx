// A link to a place of the page: a click shows the place, and the browser can open its address in another tab, copy it, or keep it.
import type { AnchorHTMLAttributes, JSX } from 'preact'
import { useContext } from 'preact/hooks'
import { go, type PagePlace, ShownPlace, toHash } from './place.ts'

/** Whether a click asks the browser for something else than to follow the link here. */
const isForBrowser = ({ button, ctrlKey, metaKey, shiftKey, altKey }: MouseEvent) =>
  button !== 0 || ctrlKey || metaKey || shiftKey || altKey

type LinkProps = Omit<AnchorHTMLAttributes, 'href' | 'onClick' | 'role'> & {
  readonly role?: 'option'
  /** What changes in the place. */
  readonly to: Partial<PagePlace>
}

export function Link({ to, ...attributes }: LinkProps): JSX.Element {
  const place = useContext(ShownPlace)
  return (
    <a
      {...attributes}
      href={toHash({ ...place, ...to })}
      onClick={(event) => {
        if (isForBrowser(event)) return
        event.preventDefault()
        go(to)
      }}
    />
  )
}
