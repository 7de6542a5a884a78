/** The real shell. The only file that knows Tauri. */
import { Channel, invoke } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";
import type { Platform } from "./types";

function channelFor<T>(reader: (message: T) => void): Channel<T> {
  const channel = new Channel<T>();
  channel.onmessage = reader;
  return channel;
}

/** The platform of the real window. */
export const tauriPlatform: Platform = {
  bootstrap: (system) => invoke("bootstrap", { system }),
  openConversation: (id) => invoke("open_conversation", { id }),
  renameConversation: (id, title) => invoke("rename_conversation", { id, title }),
  deleteConversation: (id) => invoke("delete_conversation", { id }),
  restoreConversation: (id) => invoke("restore_conversation", { id }),
  placeConversation: (id, place) => invoke("place_conversation", { id, place }),
  renameFolder: (from, to) => invoke("rename_folder", { from, to }),
  search: (words) => invoke("search", { words }),
  showMessage: (message) => invoke("show_message", { message }),
  duplicate: (message) => invoke("duplicate", { message }),
  exportConversations: (id, format) => invoke("export_conversations", { id, format }),
  importConversations: () => invoke("import_conversations"),
  send: (conversation, text, cards, reader) =>
    invoke("send", { conversation, text, cards, channel: channelFor(reader) }),
  editQuestion: (message, text, reader) =>
    invoke("edit_question", { message, text, channel: channelFor(reader) }),
  editReply: (message, text) => invoke("edit_reply", { message, text }),
  continueReply: (message, reader) =>
    invoke("continue_reply", { message, channel: channelFor(reader) }),
  countTokens: (conversation, text, cards) =>
    invoke("count_tokens", { conversation, text, cards }),
  addCard: (name, text) => invoke("add_card", { name, text }),
  pickCard: () => invoke("pick_card"),
  cardText: (id) => invoke("card_text", { id }),
  regenerate: (message, reader) => invoke("regenerate", { message, channel: channelFor(reader) }),
  attach: (turn, fromSeq, reader) =>
    invoke("attach", { turn, fromSeq, channel: channelFor(reader) }),
  stop: (turn) => invoke("stop", { turn }),
  replay: (message, reader) => invoke("replay", { message, channel: channelFor(reader) }),
  stopReplay: (message) => invoke("stop_replay", { message }),
  replyFileHash: (message) => invoke("reply_file_hash", { message }),
  stopWriting: () => invoke("stop_writing"),
  pickModel: () => invoke("pick_model"),
  addModel: (path) => invoke("add_model", { path }),
  loadModel: (id) => invoke("load_model", { id }),
  modelDetails: (id) => invoke("model_details", { id }),
  modelFits: (ids) => invoke("model_fits", { ids }),
  pickFolder: () => invoke("pick_folder"),
  addModelFolder: (path) => invoke("add_model_folder", { path }),
  removeModelFolder: (id) => invoke("remove_model_folder", { id }),
  searchFolders: () => invoke("search_folders"),
  hubSearch: (words) => invoke("hub_search", { words }),
  hubFiles: (repo) => invoke("hub_files", { repo }),
  startDownload: (repo, path) => invoke("start_download", { repo, path }),
  downloadStarter: () => invoke("download_starter"),
  pauseDownload: (id) => invoke("pause_download", { id }),
  resumeDownload: (id) => invoke("resume_download", { id }),
  removeDownload: (id) => invoke("remove_download", { id }),
  stopLoading: () => invoke("stop_loading"),
  useCpu: () => invoke("use_cpu"),
  useGpu: () => invoke("use_gpu"),
  checkAgain: () => invoke("check_again"),
  forgetModel: (id) => invoke("forget_model", { id }),
  saveSettings: (settings) => invoke("save_settings", { settings }),
  chatSettings: (conversation) => invoke("chat_settings", { conversation }),
  keepChatSettings: (conversation, chat) => invoke("keep_chat_settings", { conversation, chat }),
  previewTemplate: (chat) => invoke("preview_template", { chat }),
  diagnostics: () => invoke("diagnostics"),
  saveReport: (text) => invoke("save_report", { text }),
  serverState: () => invoke("server_state"),
  switchServer: () => invoke("switch_server"),
  openLink: (url) => invoke("open_link", { url }),
  keepUnsent: (unsent) => invoke("keep_unsent", { unsent }),
  closeWindow: () => invoke("close_window"),
  on: (event, handler) => listen(event, ({ payload }) => handler(payload as never)),
};

/** Whether this page runs inside the real shell. */
export function insideTauri(): boolean {
  return "__TAURI_INTERNALS__" in globalThis;
}
