// The switch for light and dark colours. Without a choice, the page has the colours of the system.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'

const storageName = 'hookloom-colors'
const choices = ['', 'light', 'dark'] as const
type Colors = (typeof choices)[number]

const readColors = (): Colors => choices.find((each) => each === localStorage.getItem(storageName)) ?? ''

/** Called before the page is drawn, and after each choice. */
export function applyColors(colors: Colors = readColors()): void {
  document.documentElement.dataset['colors'] = colors
}

export function ColorSwitch(): JSX.Element {
  const [colors, setColors] = useState(readColors)
  const choose = () => {
    const next = choices[(choices.indexOf(colors) + 1) % choices.length] ?? ''
    localStorage.setItem(storageName, next)
    applyColors(next)
    setColors(next)
  }
  const name = colors === '' ? 'as the system' : colors
  return (
    <button
      type="button"
      class="help"
      id="colors"
      onClick={choose}
      aria-label={`Colours: ${name}`}
      title={`Colours: ${name}`}
    >
      <span aria-hidden="true">{colors === 'light' ? '☀' : colors === 'dark' ? '☾' : '◐'}</span>
    </button>
  )
}
