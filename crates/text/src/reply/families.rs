//! The same promises for each family of models, in the way in which its models write.

use super::tests::{
    CHANNELS, LLAMA, MISTRAL, QWEN, QWEN_CODER, call, in_pieces, parts, text, thought, tools,
};
use super::*;

/// How the models of a family write.
struct Family {
    name: &'static str,
    /// Its chat template, as far as the format looks at it.
    template: &'static str,
    /// Around thoughts.
    think: (&'static str, &'static str),
    /// Whether a call may come after words.
    after_words: bool,
    /// A call of the tool with these arguments.
    call: fn(&str) -> String,
    /// What stands between two calls.
    between: &'static str,
    /// What only looks like a call.
    broken: &'static [&'static str],
}

const HERMES: &str = "<tool_call>";
const TAGS: (&str, &str) = ("<think>\n", "\n</think>\n\n");

fn tagged(arguments: &str) -> String {
    format!("<tool_call>\n{{\"name\": \"f\", \"arguments\": {arguments}}}\n</tool_call>")
}

const TAGGED_BROKEN: &[&str] = &[
    "<tool_call>\nf(1)\n</tool_call>",
    "<tool_call>{\"name\": \"f\", \"arguments\": {\"n\": 1}",
    "<tool_call>{\"name\": \"f\", \"arguments\": {\"n\": 1,}}</tool_call>",
    "<tool_call>{\"arguments\": {\"n\": 1}}</tool_call>",
    "<tool_call>",
    "<tool_",
];

const FAMILIES: [Family; 7] = [
    Family {
        name: "qwen",
        template: QWEN,
        think: TAGS,
        after_words: true,
        call: tagged,
        between: "\n",
        broken: TAGGED_BROKEN,
    },
    Family {
        name: "hermes",
        template: HERMES,
        think: TAGS,
        after_words: true,
        call: tagged,
        between: "\n",
        broken: TAGGED_BROKEN,
    },
    Family {
        name: "qwen coder",
        template: QWEN_CODER,
        think: TAGS,
        after_words: true,
        call: |arguments| {
            format!("<tool_call>\n<function=f>\n{arguments}\n</function>\n</tool_call>")
        },
        between: "\n",
        broken: &[
            "<tool_call>\n<function=f",
            "<tool_call>\n<function=>\n</function>\n</tool_call>",
            "<tool_call>\n<function=f>\nn = 1\n</function>\n</tool_call>",
            "<function=f>\n<parameter=n>\n1",
        ],
    },
    Family {
        name: "llama 3, after its mark",
        template: LLAMA,
        think: TAGS,
        after_words: true,
        call: |arguments| format!("<|python_tag|>{{\"name\": \"f\", \"parameters\": {arguments}}}"),
        between: "; ",
        broken: &[
            "<|python_tag|>print(1)",
            "<|python_tag|>{\"name\": \"f\", \"parameters\": {",
            "<|python_tag|>{\"parameters\": {}}",
        ],
    },
    Family {
        name: "llama 3, bare",
        template: LLAMA,
        think: TAGS,
        after_words: false,
        call: |arguments| format!("{{\"name\": \"f\", \"parameters\": {arguments}}}"),
        between: "; ",
        broken: &[
            "{\"name\": \"f\", \"parameters\": {\"n\": 1}",
            "{\"name\": \"somebody else's\", \"parameters\": {}}",
            "{\"type\": \"function\"}",
            "{",
        ],
    },
    Family {
        name: "mistral",
        template: MISTRAL,
        think: ("[THINK]", "[/THINK]"),
        after_words: true,
        call: |arguments| format!("[TOOL_CALLS][{{\"name\": \"f\", \"arguments\": {arguments}}}]"),
        between: "",
        broken: &[
            "[TOOL_CALLS]",
            "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"n\": 1}}",
            "[TOOL_CALLS][{\"name\": 1}]",
            "[TOOL_CALLS]f[ARGS]{\"n\": 1",
            "[TOOL_CALLS]f[ARGS]{n: 1}",
            "[TOOL_CALLS]two words[ARGS]{}",
        ],
    },
    Family {
        name: "gpt-oss",
        template: CHANNELS,
        think: TAGS,
        after_words: true,
        call: |arguments| format!("<function=f>\n{arguments}\n</function>\n"),
        between: "",
        broken: &[
            "<function=f>\n",
            "<function=f>\n{\"n\": 1",
            "<function=f>\n{n: 1}\n</function>\n",
            "<function=two words>\n{}\n</function>\n",
            "<function=f>\nn = 1\n</function>\n",
        ],
    },
];

/// The parts of a reply, however it is cut.
#[track_caller]
fn check(family: &Family, reply: &str, want: &[Part]) {
    let what = format!("{}: {reply:?}", family.name);
    let offer = tools();
    let whole = parts(family.template, &offer, reply, reply.len().max(1));
    assert_eq!(whole, want, "{what}");
    assert_eq!(
        parts(family.template, &offer, reply, 1),
        want,
        "{what}, character by character"
    );
    for (cut, _) in reply.char_indices() {
        let (first, rest) = reply.split_at(cut);
        let pieces = [first, rest].map(str::to_owned).into_iter();
        let found = in_pieces(family.template, &offer, reply, pieces);
        assert_eq!(found, want, "{what}, cut at {cut}");
    }
}

const ONE: &str = r#"{"n":1}"#;
const TWO: &str = r#"{"s":"</tool_call>}] é🙂"}"#;

#[test]
fn every_family_calls_once_several_times_and_among_words() {
    for family in &FAMILIES {
        let [one, two] = [ONE, TWO].map(family.call);
        check(family, &one, &[call(ONE)]);
        check(family, &two, &[call(TWO)]);
        let several = format!("{one}{0}{two}{0}{one}", family.between);
        check(family, &several, &[call(ONE), call(TWO), call(ONE)]);
        check(
            family,
            &format!("{one}\nDone."),
            &[call(ONE), text("Done.")],
        );
        let after = format!("Let me see: {one}");
        match family.after_words {
            true => check(family, &after, &[text("Let me see: "), call(ONE)]),
            false => check(family, &after, &[text(&after)]),
        }
    }
}

#[test]
fn what_no_family_calls_is_text_to_the_last_character() {
    for family in &FAMILIES {
        for broken in family.broken {
            check(family, broken, &[text(broken)]);
        }
        // Arguments that are no object cannot be handed on.
        for arguments in ["7", "[1]", "\"n = 1\"", "\"[1]\"", "true"] {
            let reply = (family.call)(arguments);
            let read = parts(family.template, &tools(), &reply, 1);
            let said = |part: &Part| matches!(part, Part::Text(_));
            assert!(read.iter().all(said), "{}: {reply:?} {read:?}", family.name);
            check(family, &reply, &[text(&reply)]);
        }
    }
}

#[test]
fn arguments_as_a_string_are_the_object_in_it() {
    for family in &FAMILIES {
        if !(family.call)("").contains("\"name\"") {
            continue;
        }
        check(family, &(family.call)(r#""{\"n\": 1}""#), &[call(ONE)]);
        check(family, &(family.call)("\"\""), &[call("{}")]);
        check(family, &(family.call)("null"), &[call("{}")]);
        check(family, &(family.call)("{}"), &[call("{}")]);
    }
}

#[test]
fn every_family_thinks_before_words_and_calls_also_where_a_mark_is_missing() {
    for family in &FAMILIES {
        let (open, close) = family.think;
        let one = (family.call)(ONE);
        let hm = || thought("hm");
        check(family, &format!("{open}hm{close}So."), &[hm(), text("So.")]);
        check(family, &format!("{open}hm{close}{one}"), &[hm(), call(ONE)]);
        // No end: all of it was thought.
        check(family, &format!("{open}hm"), &[hm()]);
        // No beginning, as where the template has written it.
        check(
            family,
            &format!("hm\n{}\nSo.", close.trim()),
            &[hm(), text("So.")],
        );
        // A call ends thoughts that were not ended.
        if family.after_words {
            check(family, &format!("{open}hm\n{one}"), &[hm(), call(ONE)]);
        }
    }
}
