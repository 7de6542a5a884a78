// The TypeScript twin of the wire types. It is generated; do not edit it.

/**
 * All that a window needs when it opens.
 */
export type Snapshot = {
/**
 * Version of the program.
 */
version: string,
/**
 * The banner and the model behind it.
 */
status: Status,
/**
 * The user's choices.
 */
settings: Settings,
/**
 * Newest first.
 */
conversations: Array<ConversationSummary>,
/**
 * Models known, newest use first.
 */
models: Array<ModelEntry>,
/**
 * Folders that are looked through, the program's own first.
 */
folders: Array<ModelFolder>,
/**
 * Downloads, newest first.
 */
downloads: Array<Download>,
/**
 * Whether the starter model can be had.
 */
starter: Starter,
/**
 * Replies that are being written now.
 */
turns: Array<RunningTurn>,
/**
 * What the user has to hear once: a damaged file that was kept aside, for instance.
 */
notices: Array<string>,
/**
 * What was typed and not sent, of each conversation that has some.
 */
unsent: Array<Unsent>, };

/**
 * What the engine is doing. Sent as the event `status` whenever it changes.
 */
export type Status = {
/**
 * The line that is always there.
 */
banner: Banner,
/**
 * The model that will answer next, if one is open.
 */
model: OpenModel | null, };

/**
 * The one line that says what computes and why.
 */
export type Banner = {
/**
 * Which state: decides the icon.
 */
kind: BannerKind,
/**
 * How it is to be seen.
 */
tone: Tone,
/**
 * The state, set in bold: "CPU".
 */
state: string,
/**
 * The rest of the line in plain words: "no NVIDIA driver found · AVX-512 · 2 threads".
 */
reason: string,
/**
 * What the user can do, if anything.
 */
advice: string | null,
/**
 * 0 to 1 while something is under way.
 */
progress: number | null,
/**
 * Buttons that belong to this state.
 */
actions: Array<BannerAction>,
/**
 * What the check of a GPU found, as text to pass on; none if there was no check.
 */
report: string | null,
/**
 * What "Details" shows, in order.
 */
details: Array<Detail>, };

/**
 * The states of the banner.
 */
export type BannerKind = "no-model" | "refused" | "loading" | "moving" | "proving" | "gpu" | "cpu" | "waiting" | "restarting";

/**
 * How a banner is to be seen.
 */
export type Tone = "neutral" | "attention" | "refusal" | "proven";

/**
 * A button in the banner.
 */
export type BannerAction = "stop-loading" | "open-model" | "open-starter" | "use-cpu" | "use-gpu" | "check-again" | "switch-now" | "stop-other";

/**
 * One row of the details.
 */
export type Detail = {
/**
 * "Threads".
 */
name: string,
/**
 * "2".
 */
value: string, };

/**
 * The model that is open.
 */
export type OpenModel = {
/**
 * Which entry of the library.
 */
id: string,
/**
 * As shown.
 */
name: string,
/**
 * Tokens that fit in the context.
 */
context: number,
/**
 * "llama".
 */
architecture: string,
/**
 * "Q4_1".
 */
quantization: string,
/**
 * Why the model's own chat template is not used, if so.
 */
templateFallback: string | null, };

/**
 * A model file described, open or not.
 */
export type ModelDetails = {
/**
 * File name as shown.
 */
name: string,
/**
 * What it is and what it would take; empty if it cannot be read.
 */
facts: Array<Detail>,
/**
 * What stands against it, what matters most first; empty if all is well.
 */
findings: Array<ModelFinding>,
/**
 * Whether there is room for it; none if that cannot be told.
 */
fit: Fit | null, };

/**
 * Whether there is room for a model.
 */
export type Fit = {
/**
 * In a word.
 */
verdict: FitVerdict,
/**
 * Where it would compute.
 */
place: FitPlace,
/**
 * Bytes that it takes: weights, the conversation, and what is computed with.
 */
neededBytes: number,
/**
 * Bytes that are free once the model that is open now has gone; none if nobody says.
 */
freeBytes: number | null,
/**
 * Tokens of context that this is counted for; none where only the file's size is known.
 */
context: number | null,
/**
 * With numbers, in a sentence.
 */
sentence: string, };

/**
 * Whether there is room, in a word.
 */
export type FitVerdict = "fits" | "tight" | "does-not-fit" | "unknown";

/**
 * Where a model would compute.
 */
export type FitPlace = "memory" | "card";

/**
 * The room for one model of the library.
 */
export type ModelFit = {
/**
 * Its id.
 */
id: string,
/**
 * None if its file cannot be read.
 */
fit: Fit | null, };

/**
 * A folder whose models are listed.
 */
export type ModelFolder = {
/**
 * Opaque; carries any path.
 */
id: string,
/**
 * As shown.
 */
path: string,
/**
 * The program's own, which cannot be removed.
 */
own: boolean,
/**
 * How it stands.
 */
state: FolderState,
/**
 * Model files found in it, also deep inside.
 */
models: number,
/**
 * What could not be looked at, or is not as it should be: one sentence each.
 */
problems: Array<string>, };

/**
 * How a folder of models stands.
 */
export type FolderState = "scanning" | "ready" | "missing" | "unreadable";

/**
 * A place on the hub that has model files.
 */
export type HubModel = {
/**
 * "owner/name".
 */
repo: string,
/**
 * How often it was downloaded; none if the hub does not say.
 */
downloads: number | null,
/**
 * How many people liked it.
 */
likes: number | null,
/**
 * The day of its last change, as the hub writes it; empty if it does not say.
 */
updated: string,
/**
 * Whether its owner asks for an account first.
 */
gated: boolean, };

/**
 * The model files of one place.
 */
export type HubListing = {
/**
 * "owner/name".
 */
repo: string,
/**
 * Smallest first.
 */
files: Array<HubFile>, };

/**
 * A model as it is offered: one file, or all parts of a split one.
 */
export type HubFile = {
/**
 * Path in its place; of a split model that of the first part.
 */
path: string,
/**
 * Name as shown.
 */
name: string,
/**
 * Number of files.
 */
parts: number,
/**
 * Bytes of all of them.
 */
sizeBytes: number,
/**
 * Whether the hub names checksums for all of them.
 */
checked: boolean,
/**
 * Whether there is room for it, as far as its size tells.
 */
fit: Fit | null,
/**
 * Its id in the library, if it is there already.
 */
id: string | null, };

/**
 * A download.
 */
export type Download = {
/**
 * Number.
 */
id: number,
/**
 * File name as shown.
 */
name: string,
/**
 * Where it comes from: "owner/name".
 */
repo: string,
/**
 * Bytes that are here.
 */
receivedBytes: number,
/**
 * Bytes of all of it.
 */
totalBytes: number,
/**
 * How it stands.
 */
state: DownloadState,
/**
 * Of late; none while nothing comes.
 */
bytesPerSecond: number | null,
/**
 * Seconds until it is whole, at this speed.
 */
leftS: number | null,
/**
 * What there is to say of it: why it waits, or why it failed.
 */
message: string | null,
/**
 * Its id in the library once it is whole.
 */
model: string | null, };

/**
 * How a download stands.
 */
export type DownloadState = "queued" | "running" | "waiting" | "checking" | "paused" | "failed" | "done";

/**
 * One thing about a model file that a person should know.
 */
export type ModelFinding = {
/**
 * How much it matters.
 */
weight: FindingWeight,
/**
 * A sentence.
 */
message: string,
/**
 * What can be done, where there is something.
 */
advice: string | null, };

/**
 * How much a finding matters.
 */
export type FindingWeight = "against" | "no-text" | "doubt" | "note";

/**
 * A model file that is known.
 */
export type ModelEntry = {
/**
 * Opaque; carries any path, also one that is not UTF-8.
 */
id: string,
/**
 * File name as shown; invalid bytes as the replacement sign.
 */
name: string,
/**
 * Folder as shown.
 */
folder: string,
/**
 * Size in bytes; none if the file is missing.
 */
sizeBytes: number | null,
/**
 * Whether the file is there.
 */
missing: boolean,
/**
 * Milliseconds since 1970; none if never opened.
 */
lastUsedMs: number | null, };

/**
 * Whether the starter model can be had.
 */
export type Starter = { "state": "ready",
/**
 * Its entry in the library.
 */
id: string,
/**
 * Its size.
 */
sizeBytes: number, } | { "state": "download",
/**
 * Its size.
 */
sizeBytes: number, } | { "state": "absent",
/**
 * Why.
 */
why: string, };

/**
 * The user's choices.
 */
export type Settings = {
/**
 * Light, dark or as the system says.
 */
theme: Theme,
/**
 * What may compute.
 */
device: DeviceChoice,
/**
 * Which GPU, counted from 0; none takes the one with the most free memory.
 */
gpu: number | null,
/**
 * When a GPU is held against the processor.
 */
gpuCheck: GpuCheck,
/**
 * The same for single models, by their id in the library.
 */
gpuChecks: { [key in string]: GpuCheck },
/**
 * Threads; none leaves it to the program.
 */
threads: number | null,
/**
 * Tokens of context; none leaves it to the program.
 */
context: number | null,
/**
 * In how many bits a model remembers a conversation.
 */
kv: KvChoice,
/**
 * What is chosen otherwise for single models, by their id in the library.
 */
models: { [key in string]: ModelSettings },
/**
 * First message of every new conversation to the model; empty for none.
 */
systemPrompt: string,
/**
 * How replies are chosen.
 */
sampling: Sampling,
/**
 * Words that end a reply; they are not shown.
 */
stop: Array<string>,
/**
 * A JSON schema that replies have to keep to; empty for none.
 */
jsonSchema: string,
/**
 * A chat template in the place of the model's own; empty for none.
 */
template: string,
/**
 * Whether a model that can think before it answers does so.
 */
thinking: Thinking,
/**
 * Sets of choices for a conversation, by name.
 */
presets: Array<Preset>,
/**
 * Whether the sidebar is folded.
 */
sidebarFolded: boolean,
/**
 * The language of the window.
 */
language: Language,
/**
 * Size of all text, in percent.
 */
textPercent: number,
/**
 * Folders whose models are listed, by their ids.
 */
modelFolders: Array<string>,
/**
 * Where models are searched and downloaded; empty for Hugging Face itself.
 */
hubAddress: string,
/**
 * Whether nothing may be asked of the network.
 */
offline: boolean,
/**
 * How programs are answered.
 */
server: ServerSettings, };

/**
 * What is chosen for one conversation, or kept under a name.
 */
export type ChatSettings = {
/**
 * First message to the model; empty for none.
 */
systemPrompt: string,
/**
 * How replies are chosen.
 */
sampling: Sampling,
/**
 * Words that end a reply; they are not shown.
 */
stop: Array<string>,
/**
 * A JSON schema that replies have to keep to; empty for none.
 */
jsonSchema: string,
/**
 * A chat template in the place of the model's own; empty for none.
 */
template: string,
/**
 * Whether a model that can think before it answers does so.
 */
thinking: Thinking, };

/**
 * Choices for a conversation under a name.
 */
export type Preset = {
/**
 * As the user named it; no other has the same.
 */
name: string,
/**
 * What is chosen.
 */
chat: ChatSettings, };

/**
 * What is chosen for one model; none leaves it to the settings of all.
 */
export type ModelSettings = {
/**
 * What may compute.
 */
device: DeviceChoice | null,
/**
 * Threads.
 */
threads: number | null,
/**
 * Tokens of context.
 */
context: number | null,
/**
 * In how many bits it remembers a conversation.
 */
kv: KvChoice | null, };

/**
 * How the user wants programs to be answered.
 */
export type ServerSettings = {
/**
 * Whether they are.
 */
on: boolean,
/**
 * Where on this computer.
 */
port: number,
/**
 * What every request has to carry; empty for nothing.
 */
key: string,
/**
 * Web pages that may ask, such as `http://localhost:3000`.
 */
origins: Array<string>,
/**
 * Whether programs may open other models.
 */
mayLoad: boolean, };

/**
 * How the server is.
 */
export type ServerState = { "state": "off" } | { "state": "listening",
/**
 * Where, as a program has to be told.
 */
address: string,
/**
 * Requests that are being answered or wait.
 */
requests: number, } | { "state": "port-taken",
/**
 * The port.
 */
port: number,
/**
 * One that is free.
 */
free: number | null, } | { "state": "failed",
/**
 * What it said.
 */
why: string, };

/**
 * Whether a model thinks before it answers.
 */
export type Thinking = "auto" | "on" | "off";

/**
 * The language of the window.
 */
export type Language = "system" | "english" | "german";

/**
 * What was typed in a conversation and not sent yet.
 */
export type Unsent = {
/**
 * Which; none for the one that is not begun.
 */
conversation: number | null,
/**
 * In the box.
 */
text: string,
/**
 * Given to be sent, and waiting.
 */
waiting: string,
/**
 * Long texts that go with the words in the box.
 */
cards: Array<Card>,
/**
 * Long texts that go with what waits.
 */
waitingCards: Array<Card>, };

/**
 * The look.
 */
export type Theme = "system" | "light" | "dark";

/**
 * What may compute.
 */
export type DeviceChoice = "auto" | "cpu" | "gpu";

/**
 * When a GPU is held against the processor, whose results are the reference.
 */
export type GpuCheck = "probe" | "first-prompt" | "every-prompt";

/**
 * In how many bits a model remembers a conversation.
 */
export type KvChoice = "f16" | "q8";

/**
 * How the next token is chosen.
 */
export type Sampling = {
/**
 * 0 takes the best token.
 */
temperature: number,
/**
 * 0 is off.
 */
topK: number,
/**
 * 1 is off.
 */
topP: number,
/**
 * 0 is off.
 */
minP: number,
/**
 * 1 is off.
 */
repeatPenalty: number,
/**
 * Lowers each token that was written, once; 0 is off.
 */
presencePenalty: number,
/**
 * Lowers each token for every time it was written; 0 is off.
 */
frequencyPenalty: number,
/**
 * Strength of the penalty on repeated runs of tokens (DRY); 0 is off.
 */
dryMultiplier: number,
/**
 * How fast that penalty grows with the length of a run.
 */
dryBase: number,
/**
 * Runs up to this length are free.
 */
dryAllowedLength: number,
/**
 * How often the likeliest tokens are left out (XTC); 0 is off.
 */
xtcProbability: number,
/**
 * A token counts as likely from this share on.
 */
xtcThreshold: number,
/**
 * Most tokens of a reply.
 */
maxTokens: number,
/**
 * None draws a new one for each reply, and each reply's record names it.
 */
seed: number | null, };

/**
 * A long text that goes with a message. Its words stay in the store.
 */
export type Card = {
/**
 * Number.
 */
id: number,
/**
 * A file's name, or "Pasted text".
 */
name: string,
/**
 * Size in bytes.
 */
sizeBytes: number,
/**
 * Lines.
 */
lines: number,
/**
 * How it begins.
 */
preview: string, };

/**
 * A conversation in the sidebar.
 */
export type ConversationSummary = {
/**
 * Number.
 */
id: number,
/**
 * From the first words, or as the user renamed it.
 */
title: string,
/**
 * Milliseconds since 1970 of the last change.
 */
updatedMs: number,
/**
 * Whether it stays at the top.
 */
pinned: boolean,
/**
 * The folder it lies in.
 */
folder: string | null, };

/**
 * Where a conversation stands in the sidebar.
 */
export type Place = {
/**
 * Whether it stays at the top.
 */
pinned: boolean,
/**
 * The folder it lies in.
 */
folder: string | null, };

/**
 * A conversation with its messages on the branch that is shown.
 */
export type Conversation = {
/**
 * Number.
 */
id: number,
/**
 * As in the sidebar.
 */
title: string,
/**
 * From the first to the last.
 */
messages: Array<Message>, };

/**
 * One message.
 */
export type Message = {
/**
 * Number.
 */
id: number,
/**
 * Whose.
 */
role: Role,
/**
 * As written so far; of a reply, what was said, without what was thought.
 */
text: string,
/**
 * All that was written, in its parts; empty if that is the text alone.
 */
parts: Array<MessagePart>,
/**
 * How it stands.
 */
state: MessageState,
/**
 * The turn that writes it, while one does.
 */
turn: number | null,
/**
 * What is known of how it was written; replies only.
 */
record: ReplyRecord | null,
/**
 * All versions of this message in the order of their making, itself among them; empty if it
 * is the only one.
 */
versions: Array<number>,
/**
 * UTF-16 units of all that is shown of it that were there before the turn that writes it: a
 * reply that is gone on with.
 */
kept: number,
/**
 * Long texts that go with it.
 */
cards: Array<Card>, };

/**
 * One part of a reply.
 */
export type MessagePart = {
/**
 * What it is.
 */
kind: PartKind,
/**
 * Its words, without marks.
 */
text: string,
/**
 * How long it was thought, in milliseconds; none if that is not known, and of what was said.
 */
ms: number | null, };

/**
 * What a part of a reply is.
 */
export type PartKind = "text" | "thinking";

/**
 * Whose message.
 */
export type Role = "user" | "assistant";

/**
 * How a message stands.
 */
export type MessageState = "writing" | "finished" | "stopped" | "length" | "context-full" | "interrupted" | "failed" | "edited";

/**
 * What is known of how a reply was written: the quiet line under it.
 */
export type ReplyRecord = {
/**
 * The model's name.
 */
model: string,
/**
 * What computed: "CPU", "GPU", or "GPU, then CPU".
 */
backend: string,
/**
 * Its name. Empty in records of earlier versions.
 */
device: string,
/**
 * What is known of a GPU's results: "proven on 65 positions". Empty for the processor.
 */
proof: string,
/**
 * That another device wrote the reply on, and why, if so.
 */
moved: string | null,
/**
 * Why that: "no NVIDIA driver found".
 */
backendReason: string,
/**
 * How keys and values were kept: "16 bits". Empty in records of earlier versions.
 */
kv: string,
/**
 * Tokens written.
 */
generatedTokens: number,
/**
 * Tokens read for it.
 */
promptTokens: number,
/**
 * Of these, tokens that were still in memory.
 */
cachedTokens: number,
/**
 * Reading, in milliseconds.
 */
prefillMs: number,
/**
 * Writing, in milliseconds.
 */
decodeMs: number,
/**
 * From the request to the first token; none if there was none.
 */
firstTokenMs: number | null,
/**
 * The seed that was used.
 */
seed: number,
/**
 * The settings that were used.
 */
sampling: Sampling,
/**
 * Why it failed, in plain words, if it did.
 */
failure: string | null,
/**
 * What was done to this conversation so that the model could read it, if anything; said at
 * the first reply that it concerns.
 */
notice: string | null,
/**
 * Messages from the start of the conversation that were not sent, because they do not fit in
 * the context. The system prompt is always sent.
 */
leftOut: number,
/**
 * Whether the reply was gone on with: the figures are those of its last part.
 */
continued: boolean,
/**
 * How long each part was thought, in milliseconds; 0 where it is not known.
 */
thinkingMs: Array<number>,
/**
 * How the weights are stored. This and what follows is empty in records of earlier versions.
 */
quantization: string,
/**
 * The SHA-256 of the model file, once somebody wanted to know it.
 */
fileSha256: string | null,
/**
 * The version of the program.
 */
version: string,
/**
 * The SHA-256 of the chat template; empty if a built-in format was used.
 */
templateSha256: string,
/**
 * The SHA-256 of the tokens that were sent, each as four bytes.
 */
contextSha256: string,
/**
 * Words that would have ended the reply.
 */
stop: Array<string>, };

/**
 * The answer to a message that was sent.
 */
export type Sent = {
/**
 * The turn that writes the reply: attach to it, or stop it.
 */
turn: number,
/**
 * The conversation as it stands, with the question and the reply that is being written.
 */
conversation: Conversation, };

/**
 * A reply that is being written.
 */
export type RunningTurn = {
/**
 * The turn.
 */
turn: number,
/**
 * Where.
 */
conversation: number,
/**
 * Which message.
 */
message: number, };

/**
 * What a turn tells its reader; several at once, at most one batch a frame.
 */
export type TurnBatch = {
/**
 * The number of the next event: attach from there after a break.
 */
nextSeq: number,
/**
 * In order.
 */
events: Array<TurnEvent>, };

/**
 * One piece of news of a turn.
 */
export type TurnEvent = { "kind": "waiting" } | { "kind": "checking",
/**
 * Positions that were compared.
 */
done: number,
/**
 * Positions to compare.
 */
total: number, } | { "kind": "moved",
/**
 * What is to be read in the chat.
 */
notice: string, } | { "kind": "reading",
/**
 * Tokens read.
 */
done: number,
/**
 * Tokens to read.
 */
total: number, } | { "kind": "text",
/**
 * Whole characters.
 */
text: string,
/**
 * Tokens written so far.
 */
tokens: number, } | { "kind": "thinking",
/**
 * Whole characters.
 */
text: string,
/**
 * Tokens written so far.
 */
tokens: number, } | { "kind": "thought",
/**
 * How long it was thought, in milliseconds.
 */
ms: number, } | { "kind": "textWasThinking" } | { "kind": "repeats",
/**
 * Tokens of what is repeated.
 */
blockTokens: number,
/**
 * How often it came after the first time.
 */
copies: number, } | { "kind": "finished",
/**
 * The message as it is now stored.
 */
message: Message, } | { "kind": "failed",
/**
 * The message as it is now stored.
 */
message: Message,
/**
 * What went wrong.
 */
error: WireError, };

/**
 * How a replay goes.
 */
export type ReplayEvent = { "kind": "hashing" } | { "kind": "reading",
/**
 * Tokens read.
 */
done: number,
/**
 * Tokens to read.
 */
total: number, } | { "kind": "writing",
/**
 * Tokens that are the same.
 */
done: number,
/**
 * Tokens to write.
 */
total: number, } | { "kind": "ended",
/**
 * What came out.
 */
outcome: ReplayOutcome, };

/**
 * What a replay found.
 */
export type ReplayOutcome = { "kind": "same",
/**
 * Tokens that were compared.
 */
tokens: number,
/**
 * What else was different, if anything: what computed it.
 */
note: string | null, } | { "kind": "differs",
/**
 * Which, counted from 1.
 */
token: number,
/**
 * What stood there; none for the end of the reply.
 */
then: string | null,
/**
 * What came now; none for the end of the reply.
 */
now: string | null,
/**
 * What else was different, if anything: what computed it.
 */
note: string | null, } | { "kind": "impossible",
/**
 * Why.
 */
why: string, } | { "kind": "stopped" };

/**
 * A piece of a text, found or not.
 */
export type Piece = {
/**
 * The words.
 */
text: string,
/**
 * Whether they were looked for.
 */
hit: boolean, };

/**
 * One place where the words were found.
 */
export type Found = {
/**
 * Where.
 */
conversation: number,
/**
 * Its title, in pieces.
 */
title: Array<Piece>,
/**
 * Which message; none if the title was found.
 */
message: number | null,
/**
 * The words around, in pieces; empty if the title was found.
 */
snippet: Array<Piece>, };

/**
 * How conversations are written into a file.
 */
export type ExportFormat = "json" | "markdown";

/**
 * What was written.
 */
export type Exported = {
/**
 * The file.
 */
path: string,
/**
 * Conversations in it.
 */
conversations: number, };

/**
 * What was taken in.
 */
export type Imported = {
/**
 * Which program wrote the file.
 */
source: string,
/**
 * Conversations that are new here.
 */
conversations: number,
/**
 * Their messages.
 */
messages: number,
/**
 * Parts that have no place here: pictures, tools, what is damaged.
 */
leftOut: number,
/**
 * The first of the new conversations.
 */
first: number | null, };

/**
 * What a message would take of the model's context.
 */
export type TokenCount = {
/**
 * Tokens of the message itself.
 */
message: number,
/**
 * Tokens of all that would be sent with it.
 */
prompt: number,
/**
 * Tokens that the context holds.
 */
context: number,
/**
 * Messages from the start of the conversation that would not be sent.
 */
leftOut: number,
/**
 * Why it cannot be sent, if it is too long.
 */
tooLong: string | null, };

/**
 * Something that could not be done.
 */
export type WireError = {
/**
 * For the window to act on.
 */
code: Code,
/**
 * For the person to read.
 */
message: string, };

/**
 * The errors that a window acts on.
 */
export type Code = "no-model" | "refused" | "stopped" | "too-long" | "busy" | "not-found" | "storage" | "network" | "internal";
