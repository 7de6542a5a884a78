//! The TypeScript twin of the wire types. Built only with the feature `bindings`.

use std::fmt::Write;

use ts_rs::{Config, TS};

use crate::wire;

const HEAD: &str = "// The TypeScript twin of the wire types. It is generated; do not edit it.\n";

/// The text of the window's `bindings.ts`.
#[expect(clippy::too_many_lines, reason = "one list of names")]
pub fn typescript() -> String {
    // Numbers of the store stay far below 2^53, up to which JavaScript's numbers count exactly.
    let config = Config::new().with_large_int("number");
    let mut text = String::from(HEAD);
    let mut add = |declaration: String, docs: Option<String>| {
        let docs = docs.unwrap_or_default();
        // Writing into a string cannot fail.
        let _ = write!(text, "\n{docs}export {declaration}\n");
    };
    macro_rules! types {
        ($($name:ident),* $(,)?) => {
            $(add(wire::$name::decl(&config), wire::$name::docs());)*
        };
    }
    types![
        Snapshot,
        Status,
        Banner,
        BannerKind,
        Tone,
        BannerAction,
        Detail,
        OpenModel,
        ModelDetails,
        Fit,
        FitVerdict,
        FitPlace,
        ModelFit,
        ModelFolder,
        FolderState,
        HubModel,
        HubListing,
        HubFile,
        Download,
        DownloadState,
        ModelFinding,
        FindingWeight,
        ModelEntry,
        Starter,
        Settings,
        ChatSettings,
        Preset,
        ModelSettings,
        ServerSettings,
        ServerState,
        Thinking,
        Language,
        Unsent,
        Theme,
        DeviceChoice,
        GpuCheck,
        KvChoice,
        Sampling,
        Card,
        ConversationSummary,
        Place,
        Conversation,
        Message,
        MessagePart,
        PartKind,
        Role,
        MessageState,
        ReplyRecord,
        Sent,
        RunningTurn,
        TurnBatch,
        TurnEvent,
        ReplayEvent,
        ReplayOutcome,
        Piece,
        Found,
        ExportFormat,
        Exported,
        Imported,
        TokenCount,
        WireError,
        Code,
    ];
    let lines = text.lines().map(str::trim_end);
    lines.fold(String::new(), |text, line| text + line + "\n")
}
