/**
 * Draws a growing reply into one element. Finished blocks are never touched again; the tail is
 * patched in place and becomes the finished block when the next one begins, so that a selection
 * survives and the cost of a frame does not grow with the reply.
 */
import { type Split, emptySplit, extendSplit } from "./blocks";
import { drawFormulas } from "./formulas";
import type { Growth } from "./highlight";
import { patchChildren } from "./patch";
import { renderFragment } from "./render";

/** One reply on the page. */
export class ReplyView {
  readonly #root: HTMLElement;
  #tail: HTMLElement;
  #source = "";
  #split: Split = emptySplit;

  constructor(root: HTMLElement) {
    this.#root = root;
    this.#tail = this.#newBlock();
  }

  /** Characters that the next drawing has to render. */
  get tailLength(): number {
    return this.#source.length - this.#split.tailStart;
  }

  /** Draws `text`. If it goes on from what was drawn, only what is new costs time. */
  update(text: string, growth: Growth): void {
    if (!text.startsWith(this.#source)) this.#reset();
    this.#source = text;
    const before = this.#split.finished.length;
    this.#split = extendSplit(this.#split, text);
    for (const block of this.#split.finished.slice(before)) {
      this.#draw(renderFragment(block.source, "done"));
      this.#tail = this.#newBlock();
    }
    this.#draw(renderFragment(text.slice(this.#split.tailStart), growth));
  }

  #draw(fragment: DocumentFragment): void {
    patchChildren(this.#tail, fragment);
    drawFormulas(this.#tail);
  }

  #newBlock(): HTMLElement {
    const block = document.createElement("div");
    block.className = "block";
    this.#root.append(block);
    return block;
  }

  #reset(): void {
    this.#root.replaceChildren();
    this.#split = emptySplit;
    this.#tail = this.#newBlock();
  }
}
