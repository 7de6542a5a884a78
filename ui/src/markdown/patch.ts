import { formulaOf } from "./formulas";

/**
 * Makes the children of one node equal to those of another while changing as little as possible:
 * the part of a text that stayed is not replaced, so that a selection in it survives.
 */
export function patchChildren(target: Node, source: Node): void {
  let old = target.firstChild;
  let fresh = source.firstChild;
  while (fresh) {
    const nextFresh = fresh.nextSibling;
    if (!old) {
      target.appendChild(fresh);
    } else {
      const nextOld: ChildNode | null = old.nextSibling;
      if (!patchNode(old, fresh)) target.replaceChild(fresh, old);
      old = nextOld;
    }
    fresh = nextFresh;
  }
  while (old) {
    const nextOld: ChildNode | null = old.nextSibling;
    target.removeChild(old);
    old = nextOld;
  }
}

/** False if the node has to be replaced. */
function patchNode(old: Node, fresh: Node): boolean {
  if (old instanceof Text && fresh instanceof Text) {
    patchText(old, fresh.data);
    return true;
  }
  if (!(old instanceof Element) || !(fresh instanceof Element)) return false;
  if (old.tagName !== fresh.tagName) return false;
  const formula = formulaOf(old);
  if (formula !== null || formulaOf(fresh) !== null) {
    // A formula that was drawn stays, or gives way as a whole.
    return formula === formulaOf(fresh) && old.className.startsWith(fresh.className);
  }
  patchAttributes(old, fresh);
  patchChildren(old, fresh);
  return true;
}

function patchText(old: Text, data: string): void {
  if (old.data === data) return;
  if (data.startsWith(old.data)) {
    old.appendData(data.slice(old.length));
    return;
  }
  let same = 0;
  while (same < old.length && old.data.charCodeAt(same) === data.charCodeAt(same)) same += 1;
  old.replaceData(same, old.length - same, data.slice(same));
}

function patchAttributes(old: Element, fresh: Element): void {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}
