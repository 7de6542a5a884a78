/** Other versions of messages, as the scripted platform keeps them, and its search. */
import type { Conversation, Found, Message, Piece } from "../bindings";

/** Branches that are not shown. */
export class ScriptedTree {
  /** The messages from a version on, of each message that has several. */
  readonly #hidden = new Map<number, Message[]>();
  readonly #versions = new Map<number, number[]>();

  /** Keeps the old version and what follows it, and gives the numbers of all versions. */
  beside(conversation: Conversation, old: Message, id: number): number[] {
    const at = conversation.messages.findIndex((m) => m.id === old.id);
    this.#hidden.set(old.id, conversation.messages.slice(at));
    const versions = [...(this.#versions.get(old.id) ?? [old.id]), id];
    for (const version of versions) this.#versions.set(version, versions);
    return versions;
  }

  /** The conversation with this message on it, if it is known. */
  show(id: number, all: Conversation[]): Conversation | null {
    const shown = all.find((c) => c.messages.some((m) => m.id === id));
    if (shown) return this.#withVersions(shown);
    const rest = this.#hidden.get(id);
    const versions = this.#versions.get(id);
    if (!rest || !versions) return null;
    const other = all.find((c) => c.messages.some((m) => versions.includes(m.id)));
    if (!other) return null;
    const at = other.messages.findIndex((m) => versions.includes(m.id));
    const hidden = other.messages[at];
    if (hidden) this.#hidden.set(hidden.id, other.messages.slice(at));
    return this.#withVersions({ ...other, messages: [...other.messages.slice(0, at), ...rest] });
  }

  #withVersions(conversation: Conversation): Conversation {
    const messages = conversation.messages.map((m) => ({
      ...m,
      versions: this.#versions.get(m.id) ?? m.versions,
    }));
    return { ...conversation, messages };
  }

  /** Titles first, then messages, each around its first hit. */
  search(words: string, all: Conversation[]): Found[] {
    const looked = words.trim().toLowerCase();
    if (looked === "") return [];
    const titles = all
      .filter((c) => c.title.toLowerCase().includes(looked))
      .map((c): Found => ({ conversation: c.id, title: marked(c.title, looked), message: null, snippet: [] }));
    const messages = all.flatMap((c) =>
      c.messages
        .filter((m) => m.text.toLowerCase().includes(looked))
        .map(
          (m): Found => ({
            conversation: c.id,
            title: [{ text: c.title, hit: false }],
            message: m.id,
            snippet: marked(around(m.text, looked), looked),
          }),
        ),
    );
    return [...titles, ...messages];
  }
}

function around(text: string, looked: string): string {
  const at = text.toLowerCase().indexOf(looked);
  const start = Math.max(0, at - 40);
  return `${start > 0 ? "…" : ""}${text.slice(start, at + looked.length + 60)}…`;
}

function marked(text: string, looked: string): Piece[] {
  const at = text.toLowerCase().indexOf(looked);
  const parts: Piece[] = [
    { text: text.slice(0, at), hit: false },
    { text: text.slice(at, at + looked.length), hit: true },
    { text: text.slice(at + looked.length), hit: false },
  ];
  return parts.filter((piece) => piece.text !== "");
}
