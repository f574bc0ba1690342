// The keyboard shortcuts. For each, there is a button or a link with the same effect.
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

const keys: readonly (readonly [key: string, meaning: string])[] = [
  ['j  k  ↓  ↑', 'the next, the previous delivery'],
  ['Enter', 'read the chosen delivery'],
  ['Ctrl-K', 'go to a view, a hook, a session or an id, or do something'],
  ['Esc', 'close the menu; then back to the list'],
  ['/', 'search'],
  ['r', 'retry the chosen delivery'],
  ['c', 'copy it as a curl command'],
  ['e', 'open its transform in the editor'],
  ['x', 'choose the delivery, to retry or drop several; show each refusal of a row'],
  ['p', 'pause and resume the list, the replay'],
  ['1  2  3  4  5  6  7', 'deliveries, hooks, replay, sessions, health, acts, costs'],
  ['?', 'this help'],
]

const storageName = 'hookloom-keys'

/** Whether shortcuts of one character are off. Users of speech input turn them off, because speech types them by accident. */
const areLettersOff = (): boolean => localStorage.getItem(storageName) === 'off'

function switchLetters(isOn: boolean): void {
  if (isOn) localStorage.removeItem(storageName)
  else localStorage.setItem(storageName, 'off')
}

/**
 * Calls the action of a pressed key. An action returns `unused` if the key keeps its usual meaning. In a text field, only Escape is a shortcut.
 */
export function useKeys(actions: Readonly<Record<string, () => unknown>>): void {
  const now = useRef(actions)
  now.current = actions
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return
      const isPalette = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k'
      if ((event.ctrlKey || event.metaKey || event.altKey) && !isPalette) return
      // a dialog closes itself on Escape
      if (document.querySelector('dialog[open]') !== null) return
      const { target } = event
      const isTyping = target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
      if (isPalette) {
        event.preventDefault()
        now.current['Ctrl-K']?.()
        return
      }
      if (event.key === 'Escape' && closeMenu()) return
      if (isTyping && event.key !== 'Escape') return
      if (event.key.length === 1 && areLettersOff()) return
      const isPressable = target instanceof HTMLButtonElement || target instanceof HTMLAnchorElement
      if (event.key === 'Enter' && (isPressable || (target instanceof HTMLElement && target.tagName === 'SUMMARY')))
        return
      const action = now.current[event.key]
      if (action === undefined || action() === 'unused') return
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

/** Closes an open menu, and returns whether there was one. Its button gets the focus. */
function closeMenu(): boolean {
  const menu = document.querySelector<HTMLDetailsElement>('details:is(.menu, .saved-menu)[open]')
  if (menu === null) return false
  menu.open = false
  menu.querySelector('summary')?.focus()
  return true
}

export function Help({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (isOpen) dialog.current?.showModal()
    else dialog.current?.close()
  }, [isOpen])
  return (
    <dialog ref={dialog} onClose={onClose} aria-label="Keys">
      <h2>Keys</h2>
      <dl class="fields">
        {keys.map(([key, meaning]) => (
          <>
            <dt key={key}>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </>
        ))}
      </dl>
      <p>
        <label>
          <input
            type="checkbox"
            defaultChecked={!areLettersOff()}
            onChange={({ currentTarget }) => switchLetters(currentTarget.checked)}
          />{' '}
          keys of one character
        </label>
      </p>
      <button type="button" onClick={onClose}>
        close
      </button>
    </dialog>
  )
}
