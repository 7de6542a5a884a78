/** What the record under a reply can ask of the program. */
import type { Platform, ReplayReader, ServerState } from "../platform/types";

/** For one reply. */
export interface RecordDoor {
  /** Writes the reply once more; it enters no conversation. */
  replay(reader: ReplayReader): Promise<void>;
  stopReplay(): Promise<void>;
  /** Of the model file that wrote it. */
  fileHash(): Promise<string>;
}

/** The door of a reply. */
export function recordDoor(platform: Platform, message: number): RecordDoor {
  return {
    replay: (reader) => platform.replay(message, reader),
    stopReplay: () => platform.stopReplay(message),
    fileHash: () => platform.replyFileHash(message),
  };
}

/** The report on the program and the machine. */
export interface ReportDoor {
  read: () => Promise<string>;
  /** Keeps what was read where the person says; false if they thought better of it. */
  save: (text: string) => Promise<boolean>;
}

/** The server that answers other programs. */
export interface ServerDoor {
  state: () => Promise<ServerState>;
  /** Makes it as the settings say. */
  apply: () => Promise<ServerState>;
}
