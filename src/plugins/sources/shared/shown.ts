// Removes text that its style, class, attributes or element hide from the reader of a mail.
import type { DomNode } from 'html-to-text'
import { readDeclarations } from './css.ts'
import { type Appearance, defaultAppearance, isTextVisible, readAppearance } from './hidden.ts'
import { createStylesheet, isShownMedium } from './stylesheet.ts'

/** Removes the hidden elements in `top`. An explicit stack is used, because mails may nest thousands of elements. */
export function removeHidden(top: DomNode): void {
  const stylesOf = createStylesheet(findSheets(top))
  const open: [DomNode, Appearance][] = [[top, defaultAppearance]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [element, look] = next
    const isShown = isTextVisible(look)
    // otherwise the address of a link without text would be written
    if (!isShown && element.attribs !== undefined) delete element.attribs['href']
    const kept: DomNode[] = []
    for (const child of listOpenChildren(element)) {
      if (child.type === 'text') {
        if (isShown || (child.data ?? '').trim() === '') kept.push(child)
        continue
      }
      if (child.attribs?.['hidden'] !== undefined) continue
      const childLook = readAppearance(
        [
          ...listPresentationStyles(child).map(readDeclarations),
          ...stylesOf(child),
          ...readStyleAttribute(child).map(readDeclarations),
        ],
        look,
      )
      if (childLook === undefined) continue
      kept.push(child)
      open.push([child, childLook])
    }
    if (element.children !== undefined) element.children = kept
  }
}

function findSheets(top: DomNode): string[] {
  const sheets: string[] = []
  const open = [top]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { children = [], name, attribs } = next
    if (name !== 'style') open.push(...children.toReversed())
    else if (isShownMedium(attribs?.['media'] ?? '')) sheets.push(children.map(({ data }) => data ?? '').join(''))
  }
  return sheets
}

/** The children, except those that are shown only after a click. */
function listOpenChildren({ name, attribs, children = [] }: DomNode): DomNode[] {
  const isOpen = attribs?.['open'] !== undefined
  if (name === 'dialog') return isOpen ? children : []
  if (name !== 'details' || isOpen) return children
  const summary = children.find((child) => child.name === 'summary')
  return summary === undefined ? [] : [summary]
}

function readStyleAttribute({ attribs }: DomNode): string[] {
  const style = attribs?.['style'] ?? ''
  return style === '' ? [] : [style]
}

/** The colours that attributes of an element set, or that browsers set for it. */
function listPresentationStyles({ name, attribs = {} }: DomNode): string[] {
  const buildDeclaration = (property: string, value: string | undefined) => {
    const colour = value?.trim() ?? ''
    return /^[#\w(),.% ]+$/.test(colour)
      ? [`${property}:${/^(?:[\da-f]{3}){1,2}$/i.test(colour) ? '#' : ''}${colour}`]
      : []
  }
  return [
    ...(name === 'a' && attribs['href'] !== undefined ? ['color:#0000ee'] : []),
    ...(name === 'mark' ? ['color:#000;background-color:#ff0'] : []),
    ...buildDeclaration('background-color', attribs['bgcolor']),
    ...(attribs['background'] === undefined ? [] : ['background-image:url()']),
    ...(name === 'font' ? buildDeclaration('color', attribs['color']) : []),
    ...(name === 'body' ? buildDeclaration('color', attribs['text']) : []),
  ]
}
