use serde_json::json;

use super::*;

/// Templates of the families, as far as the format looks at them.
pub(super) const QWEN: &str = "<think></think><tool_call>";
pub(super) const QWEN_CODER: &str = "<tool_call>\n<function=";
pub(super) const LLAMA: &str = "<|start_header_id|><|python_tag|>parameters";
pub(super) const MISTRAL: &str = "[TOOL_CALLS][/THINK]";
pub(super) const CHANNELS: &str = "<|channel|>analysis</think>";
const PLAIN: &str = "<|im_start|>";

pub(super) fn tools() -> Tools {
    Tools::described(&[json!({ "type": "function", "function": {
        "name": "f",
        "parameters": { "properties": { "n": { "type": "integer" }, "s": { "type": "string" } } },
    }})])
}

pub(super) fn text(words: &str) -> Part {
    Part::Text(words.to_owned())
}

pub(super) fn thought(words: &str) -> Part {
    Part::Thinking(words.to_owned())
}

pub(super) fn call(arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        name: "f".to_owned(),
        arguments: arguments.to_owned(),
    })
}

/// The parts of a reply that comes in pieces of so many characters; nothing of it is lost.
pub(super) fn parts(template: &str, tools: &Tools, reply: &str, piece: usize) -> Vec<Part> {
    let chars: Vec<char> = reply.chars().collect();
    let pieces = chars
        .chunks(piece)
        .map(|chars| chars.iter().collect::<String>());
    in_pieces(template, tools, reply, pieces)
}

pub(super) fn in_pieces(
    template: &str,
    tools: &Tools,
    reply: &str,
    pieces: impl Iterator<Item = String>,
) -> Vec<Part> {
    let format = ReplyFormat::of_template(Some(template));
    let mut parser = ReplyParser::new(&format, tools.clone());
    let mut told: Vec<Piece> = pieces.flat_map(|piece| parser.push(&piece)).collect();
    told.extend(parser.finish());
    let raw: String = told.iter().map(|piece| piece.raw.as_str()).collect();
    assert_eq!(raw, reply, "nothing is lost");
    let mut parts = Vec::new();
    told.into_iter()
        .for_each(|piece| join(&mut parts, piece.part));
    parts
}

#[track_caller]
fn check(template: &str, tools: &Tools, reply: &str, want: &[Part]) {
    for piece in [1, 2, 3, 7, reply.len().max(1)] {
        let found = parts(template, tools, reply, piece);
        assert_eq!(found, want, "{reply:?} in pieces of {piece}");
    }
}

#[test]
fn thoughts_are_split_from_the_answer() {
    let check = |reply: &str, want: &[Part]| check(QWEN, &Tools::None, reply, want);
    check("Hello.", &[text("Hello.")]);
    check("", &[]);
    check(
        "<think>\nhm\n\nwell\n</think>\n\nHello.\n",
        &[thought("hm\n\nwell"), text("Hello.\n")],
    );
    check("<think></think>Hello.", &[text("Hello.")]);
    check("\n<think>\n\n</think>\n\nHello.", &[text("\nHello.")]);
    check("[THINK]hm[/THINK]Hello.", &[thought("hm"), text("Hello.")]);
    check(
        "<|channel>thought\nhm<channel|>Hello.",
        &[thought("hm"), text("Hello.")],
    );
    check(
        "<think>a</think>b\n<think>c</think>d",
        &[thought("a"), text("b\n"), thought("c"), text("d")],
    );
}

#[test]
fn broken_thoughts_lose_nothing() {
    let check = |reply: &str, want: &[Part]| check(QWEN, &Tools::None, reply, want);
    // No end, or a mark cut at the end.
    check("<think>hm", &[thought("hm")]);
    check("<think>hm\n</thin", &[thought("hm\n</thin")]);
    check("<thin", &[text("<thin")]);
    // No beginning.
    check("hm\n</think>\n\nHello.", &[thought("hm"), text("Hello.")]);
    check("hm</think>Hello.", &[thought("hm"), text("Hello.")]);
    check("</think>\n\nHello.", &[text("Hello.")]);
    // One in the other.
    check(
        "<think>a<think>b</think>c</think>d",
        &[thought("a<think>b"), text("c</think>d")],
    );
    check(
        "<think>a\n<think>b</think>\nc\n</think>\nd",
        &[thought("a\n<think>b"), thought("c"), text("d")],
    );
    // An end of another kind is none.
    check("<think>a[/THINK]b", &[thought("a[/THINK]b")]);
    check("a < b and a <= c", &[text("a < b and a <= c")]);
}

#[test]
fn marks_in_code_are_examples() {
    let check = |reply: &str, want: &[Part]| check(QWEN, &tools(), reply, want);
    for example in [
        "Models write\n```\n<think>\nhm\n</think>\n```\naround it.",
        "Write `<think>` and `</think>`.",
        "The <think> tag.",
        "~~~xml\n<tool_call>\n{\"name\": \"f\"}\n</tool_call>\n~~~\n",
        "`<tool_call>{\"name\": \"f\"}</tool_call>`",
    ] {
        check(example, &[text(example)]);
    }
    check(
        "<think>they end with `</think>` ok</think>So.",
        &[thought("they end with `</think>` ok"), text("So.")],
    );
    // A fence that was forgotten does not take the answer.
    check(
        "<think>```\ncode\n</think>\nSo.",
        &[thought("```\ncode"), text("So.")],
    );
}

#[test]
fn a_model_that_is_not_known_to_think_may() {
    let check = |reply: &str, want: &[Part]| check(PLAIN, &Tools::None, reply, want);
    check("<think>a</think>b", &[thought("a"), text("b")]);
    check("a\n</think>\nb", &[thought("a"), text("b")]);
    check(
        "The mark </think> ends it.",
        &[text("The mark </think> ends it.")],
    );
}

#[test]
fn calls_are_read_in_each_form() {
    let one = r#"{"n":1}"#;
    let json = r#"{"name": "f", "arguments": {"n": 1}}"#;
    let check = |template: &str, reply: &str, want: &[Part]| check(template, &tools(), reply, want);
    let tagged = format!("<tool_call>\n{json}\n</tool_call>");
    check(QWEN, &tagged, &[call(one)]);
    check(
        QWEN,
        &format!("{tagged}\n{tagged}"),
        &[call(one), call(one)],
    );
    check(
        QWEN,
        &format!("<think>\nhm\n</think>\n\nLet me see.\n{tagged}\nDone."),
        &[
            thought("hm"),
            text("Let me see.\n"),
            call(one),
            text("Done."),
        ],
    );
    check(
        QWEN,
        &format!("<think>hm\n{tagged}"),
        &[thought("hm"), call(one)],
    );
    let string = r#"<tool_call>{"name":"f","arguments":{"s":"</tool_call>{"}}</tool_call>"#;
    check(QWEN, string, &[call(r#"{"s":"</tool_call>{"}"#)]);
    let xml = "<function=f>\n<parameter=n>\n1\n</parameter>\n<parameter=s>\n12\nx\n</parameter>\n</function>";
    let both = r#"{"n":1,"s":"12\nx"}"#;
    check(QWEN_CODER, xml, &[call(both)]);
    check(
        QWEN_CODER,
        &format!("So:\n<tool_call>\n{xml}\n</tool_call>"),
        &[text("So:\n"), call(both)],
    );
    let forgotten = "<function=f>\n<parameter=n>\n1\n<parameter=s>\n2\n</function>";
    check(QWEN_CODER, forgotten, &[call(r#"{"n":1,"s":"2"}"#)]);
    check(QWEN_CODER, "<function=f>\n</function>", &[call("{}")]);
    check(LLAMA, &format!("<|python_tag|>{json}"), &[call(one)]);
    let bare = r#"{"name": "f", "parameters": {"n": 1}}"#;
    check(LLAMA, bare, &[call(one)]);
    check(LLAMA, &format!("{bare}; {bare}"), &[call(one), call(one)]);
    check(
        MISTRAL,
        &format!("[TOOL_CALLS][{json}, {json}]"),
        &[call(one), call(one)],
    );
    check(
        MISTRAL,
        r#"[TOOL_CALLS]f[ARGS]{"n":1}[TOOL_CALLS]f{"n":1}"#,
        &[call(one), call(one)],
    );
    check(
        MISTRAL,
        r#"Ok.[TOOL_CALLS]f[CALL_ID]ab[ARGS]{"n":1}"#,
        &[text("Ok."), call(one)],
    );
    check(
        CHANNELS,
        "<think>\nhm\n</think>\n\n<function=f>\n{\"n\":1}",
        &[thought("hm"), call(one)],
    );
}

#[test]
fn what_only_looks_like_a_call_is_text() {
    let check = |template: &str, reply: &str| check(template, &tools(), reply, &[text(reply)]);
    check(QWEN, "<tool_call>\nf(1)\n</tool_call>");
    check(QWEN, r#"<tool_call>{"name": "f", "arguments": {"n": 1}"#);
    check(QWEN, r#"<tool_call>{"name": 3}</tool_call>"#);
    check(QWEN, r#"<tool_call>{name: f}</tool_call>"#);
    check(QWEN, r#"{"name": "f", "parameters": {}}"#);
    check(QWEN_CODER, "<function=f>\n<parameter=n>\n1");
    check(QWEN_CODER, "<function=f g>\n</function>");
    check(LLAMA, r#"{"name": "Bob", "age": 3}"#);
    check(LLAMA, r#"{"age": 3}"#);
    check(LLAMA, "<|python_tag|>print(1)");
    check(MISTRAL, "[TOOL_CALLS]nothing at all\nhere {}");
    check(MISTRAL, "[TOOL_CALLS][]");
    // Only the broken one is text.
    let good = r#"<tool_call>{"name":"f"}</tool_call>"#;
    let mixed = format!("<tool_call>oops\n{good}");
    super::tests::check(
        QWEN,
        &tools(),
        &mixed,
        &[text("<tool_call>oops\n"), call("{}")],
    );
    // Nobody offered a tool.
    super::tests::check(QWEN, &Tools::None, good, &[text(good)]);
}

#[test]
fn a_reply_that_begins_calls_without_end_is_read_in_bounded_work() {
    let reply = "<tool_call>{".repeat(20_000);
    check_whole(&reply);
}

fn check_whole(reply: &str) {
    let found = parts(QWEN, &tools(), reply, 997);
    assert_eq!(found, [text(reply)]);
}

/// What replies are made of: whatever opens, closes or hides a mark, whole and cut.
const PIECES: [&str; 40] = [
    "<think>",
    "</think>",
    "[THINK]",
    "[/THINK]",
    "<|channel>thought",
    "<channel|>",
    "<thi",
    "nk>",
    "</",
    "<tool_call>",
    "</tool_call>",
    "<function=f>",
    "<function=",
    "</function>",
    "<parameter=n>",
    "</parameter>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "<|python_tag|>",
    r#"{"name": "f", "arguments": {"n": 1}}"#,
    r#"{"name": "f""#,
    "}",
    "{",
    "[",
    "]",
    "\"",
    "\\",
    "```",
    "```\n",
    "~~~",
    "`",
    "\n",
    "\n\n",
    "  ",
    "word",
    "é🙂",
    ";",
    "1",
    "\t",
];

#[test]
fn nothing_is_lost_and_no_cut_matters_whatever_comes() {
    // The multiplier and the increment are Knuth's, from MMIX.
    let mut state = 7_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let templates = [QWEN, QWEN_CODER, LLAMA, MISTRAL, CHANNELS, PLAIN];
    for _ in 0..6_000 {
        let count = 1 + below(14);
        let reply: String = (0..count).map(|_| PIECES[below(PIECES.len())]).collect();
        let template = templates[below(templates.len())];
        let tools = [Tools::None, tools()][below(2)].clone();
        let whole = parts(template, &tools, &reply, reply.len());
        let chars: Vec<char> = reply.chars().collect();
        let mut rest = &chars[..];
        let cut = std::iter::from_fn(|| {
            let (piece, more) = rest.split_at((1 + below(6)).min(rest.len()));
            rest = more;
            (!piece.is_empty()).then(|| piece.iter().collect::<String>())
        });
        let found = in_pieces(template, &tools, &reply, cut);
        assert_eq!(found, whole, "{reply:?}");
    }
}
