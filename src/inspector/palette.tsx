// Ctrl-K: one field that reaches the views, the hooks, the sessions, a delivery by its id, and what the page can do now.
import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { call } from './api.ts'
import { go, viewNames, views } from './place.ts'
import { Line } from './text.tsx'

const maxShown = 12

type Target = { readonly kind: string; readonly name: string; readonly run: () => void }

/** The buttons that can be pressed from here, by their id. A button that is not on the page, or is disabled, is not offered. */
const buttons: Readonly<Record<string, string>> = {
  retry: 'retry the chosen delivery',
  'copy-curl': 'copy it as a curl command',
  'open-editor': 'open its transform in the editor',
  pause: 'pause and resume the list',
  colors: 'switch between light and dark',
}

const goTo = (change: Parameters<typeof go>[0]) => () => go({ id: '', bench: '', from: '', session: '', ...change })

function listActs(): Target[] {
  return Object.entries(buttons).flatMap(([id, name]) => {
    const button = document.getElementById(id)
    const isUsable = button instanceof HTMLElement && !(button instanceof HTMLButtonElement && button.disabled)
    return isUsable ? [{ kind: 'do', name, run: () => button.click() }] : []
  })
}

/** Reads the hooks and the sessions once, when the palette opens. */
function useTargets(): readonly Target[] {
  const [found, setFound] = useState<readonly Target[]>([])
  const [acts] = useState(listActs)
  useEffect(() => {
    const ended = new AbortController()
    const { signal } = ended
    const add = (targets: readonly Target[]) => setFound((before) => [...before, ...targets])
    const ignore = () => undefined
    void call('GET /api/hooks', { signal })
      .then(({ hooks }) =>
        add(
          hooks.flatMap(({ name }) =>
            name === null ? [] : [{ kind: 'hook', name, run: goTo({ view: 'hooks', bench: name }) }],
          ),
        ),
      )
      .catch(ignore)
    void call('GET /api/sessions', { signal })
      .then(({ sessions }) =>
        add(
          sessions.map(({ agentId, sessionKey }) => {
            const session = `${agentId}/${sessionKey}`
            return { kind: 'session', name: session, run: goTo({ view: 'sessions', session }) }
          }),
        ),
      )
      .catch(ignore)
    return () => ended.abort()
  }, [])
  const places = views.map((view) => ({ kind: 'view', name: viewNames[view], run: goTo({ view }) }))
  const attention = { kind: 'view', name: 'attention', run: goTo({ view: 'list', state: 'attention' }) }
  return [attention, ...places, ...acts, ...found]
}

const isId = (text: string) => /^[\da-f]{8}-[\da-f-]{27}$/i.test(text)

export function Palette({ onClose }: { onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const targets = useTargets()
  const isOver = useRef(false)
  // before the next key: the first letter must not be a key of the page
  useLayoutEffect(() => dialog.current?.showModal(), [])

  /** The event `close` comes later, perhaps when the palette is open again. */
  function close(): void {
    if (isOver.current) return
    isOver.current = true
    dialog.current?.close()
    onClose()
  }

  const word = text.trim()
  const words = word.toLowerCase().split(/\s+/)
  const others: Target[] = isId(word)
    ? [{ kind: 'id', name: word, run: goTo({ view: 'list', id: word, state: '' }) }]
    : word === ''
      ? []
      : [{ kind: 'search', name: word, run: goTo({ view: 'list', q: word, state: '' }) }]
  const fits = targets.filter(({ kind, name }) => words.every((each) => `${kind} ${name}`.toLowerCase().includes(each)))
  const shown = [...fits.slice(0, maxShown), ...others]
  const chosen = Math.min(at, shown.length - 1)
  const run = (target: Target | undefined) => {
    if (target === undefined) return
    close()
    target.run()
  }
  return (
    <dialog ref={dialog} class="palette" onCancel={close} onClose={close} aria-label="Go to">
      <input
        role="combobox"
        aria-label="A view, a hook, a session, an id, or what to do"
        aria-expanded="true"
        aria-controls="targets"
        aria-activedescendant={shown.length > 0 ? `target-${chosen}` : undefined}
        placeholder="a view, a hook, a session, an id, or what to do"
        value={text}
        spellcheck={false}
        autocomplete="off"
        onInput={({ currentTarget }) => {
          setText(currentTarget.value)
          setAt(0)
        }}
        onKeyDown={(event) => {
          const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
          if (by === undefined && event.key !== 'Enter') return
          event.preventDefault()
          if (by === undefined) run(shown[chosen])
          else setAt((chosen + by + shown.length) % Math.max(1, shown.length))
        }}
      />
      <ul id="targets" role="listbox" aria-label="Where to">
        {shown.map((target, index) => (
          <li
            key={`${target.kind} ${target.name}`}
            id={`target-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => run(target)}
          >
            <span class="dim">{target.kind}</span> <Line text={target.name} max={120} />
          </li>
        ))}
      </ul>
    </dialog>
  )
}
