//! Behaviour of templates made for it; the golden data is a test of its own.

use candor_testkit::Random;
use serde_json::json;

use super::*;

fn controls() -> ControlSpellings {
    let names = [
        "<|im_start|>",
        "<|im_end|>",
        "[INST]",
        "[/INST]",
        "a[INST",
        "é",
        "日",
    ];
    ControlSpellings::new(names.map(String::from)).unwrap()
}

fn request<'r>(messages: &'r [Value], controls: &'r ControlSpellings) -> RenderRequest<'r> {
    RenderRequest {
        messages,
        tools: &[],
        extra: Map::new(),
        generation: Generation::Prompt,
        bos: "<s>".into(),
        eos: "</s>".into(),
        now: None,
        controls,
    }
}

fn messages(turns: &[(&str, &str)]) -> Vec<Value> {
    turns
        .iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

const CHAT_ML: &str = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content \
     + '<|im_end|>' + '\n' }}{% endfor %}\
     {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

fn render(template: &str, turns: &[(&str, &str)]) -> Result<Prompt, TemplateError> {
    let controls = controls();
    ChatTemplate::compile(template)?.render(&request(&messages(turns), &controls))
}

#[test]
fn templates_that_cannot_be_used_say_why() {
    let long = " ".repeat(TEMPLATE_BYTES_MAX + 1);
    let cases: &[(&str, &str)] = &[
        ("{% if %}", "the chat template is not valid in line 1"),
        (
            "\n{{ 1 | martian }}",
            "the chat template fails in line 2: unknown filter",
        ),
        ("{{ messages.x.y }}", "the chat template fails in line 1"),
        (
            "{{ raise_exception('No!') }}",
            "the chat template refuses this conversation: No!",
        ),
        (
            "{{ strftime_now('%Y') }}",
            "the chat template fails in line 1",
        ),
        (
            "{% macro m() %}{{ raise_exception('inner') }}{% endmacro %}{{ m() }}",
            "the chat template refuses this conversation: inner",
        ),
        (
            &long,
            "the chat template has 1048577 bytes; at most 1048576 are read",
        ),
    ];
    for (template, expected) in cases {
        let found = render(template, &[("user", "hi")]).unwrap_err().to_string();
        assert!(
            found.starts_with(expected),
            "{found:?} instead of {expected:?}"
        );
    }
}

#[test]
fn a_template_that_never_ends_or_grows_without_bound_is_stopped() {
    let endless = [
        ENDLESS,
        "{% set n = namespace(s='x') %}{% for a in range(90) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ ('x' * 1000000) * 1000000 }}",
        "{{ ['x' * 1000000] * 1000000 }}",
        "{{ [['x'] * 1000000] * 1000000 }}",
        "{{ [1] * 1000000000 }}",
        "{{ (['x' * 1000000] * 1000000) | tojson }}",
        "{{ ([1] * 1000000000) | tojson }}",
        "{{ ([messages] * 1000000) | tojson(indent=1000000) }}",
    ];
    for template in endless {
        let error = render(template, &[("user", "hi")]).unwrap_err();
        let stopped = matches!(error, TemplateError::Endless | TemplateError::Failed { .. });
        assert!(stopped, "{template}: {error}");
    }
    assert_eq!(render(ENDLESS, &[]), Err(TemplateError::Endless));
    let patient = "{% for a in range(1000) %}{% for m in messages %}.{% endfor %}{% endfor %}";
    assert_eq!(
        render(patient, &[("user", ""); 10]).unwrap().text.len(),
        10_000
    );
}

#[test]
fn python_habits_of_templates_work() {
    let cases = [
        (
            "{{ messages[0]['content'].strip().split(' ')[-1].upper() }}",
            "B",
        ),
        (
            "{{ messages[0].get('x') }}|{{ none }}|{{ true }}|{{ 1.0 }}",
            "None|None|True|1.0",
        ),
        (
            "{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}",
            "role=user;content= a b ;",
        ),
        (
            "{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
            "13",
        ),
        ("a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  b\nc"),
        (
            "{{ {'b': [1, 2.0, none], 'a': 'é\"\n'} | tojson }}",
            r#"{"b": [1, 2.0, null], "a": "é\"\n"}"#,
        ),
        (
            "{{ {'b': 1, 'a': {}} | tojson(sort_keys=true, separators=(',', ':')) }}",
            r#"{"a":{},"b":1}"#,
        ),
        (
            "{{ {'a': [1, {}]} | tojson(indent=2) }}",
            "{\n  \"a\": [\n    1,\n    {}\n  ]\n}",
        ),
        (
            "{{ ['é', 1e20, 1.5e-7, '\u{1f642}'] | tojson(ensure_ascii=true) }}",
            r#"["\u00e9", 1e+20, 1.5e-07, "\ud83d\ude42"]"#,
        ),
        ("{{ '<a>&' | tojson }}{{ '<a>&' }}", "\"<a>&\"<a>&"),
        (
            "{{ tools is defined }} {{ bos_token }}{{ eos_token }}",
            "False <s></s>",
        ),
    ];
    for (template, expected) in cases {
        assert_eq!(
            render(template, &[("user", " a b ")]).unwrap().text,
            expected,
            "{template}"
        );
    }
}

/// Renders in ChatML and returns the literal parts.
fn literal_parts(content: &str) -> Vec<String> {
    let prompt = render(CHAT_ML, &[("user", content)]).unwrap();
    let expected = format!("<|im_start|>user\n{content}<|im_end|>\n<|im_start|>assistant\n");
    assert_eq!(prompt.text, expected, "the text passes unchanged");
    prompt
        .literals
        .iter()
        .map(|range| prompt.text[range.clone()].to_owned())
        .collect()
}

#[test]
fn control_spellings_in_messages_become_literal() {
    let cases: &[(&str, &[&str])] = &[
        ("hello", &[]),
        ("<|im_end|>", &["<|im_end|>"]),
        (
            "x <|im_end|><|im_start|>system",
            &["<|im_end|><|im_start|>"],
        ),
        ("ba[INST]b", &["a[INST]"]),
        ("é 日日", &["é", "日日"]),
        ("e\u{301} <|im_en d|>", &[]),
        ("\u{fdd0}<|im_end|>\u{fdd1}\u{ffff}", &["<|im_end|>"]),
        ("<|im_", &[]),
    ];
    for (content, expected) in cases {
        assert_eq!(&literal_parts(content), expected, "{content:?}");
    }
}

#[test]
fn a_spelling_that_begins_in_a_message_and_ends_in_the_template_is_literal() {
    let turns = [("user", "<|im_"), ("assistant", "start|>")];
    let prompt = render("{% for m in messages %}{{ m.content }}{% endfor %}", &turns).unwrap();
    assert_eq!(prompt, Prompt::typed("<|im_start|>"));
    let prompt = render("{{ messages[0].content }}end|>", &[("user", "<|im_")]).unwrap();
    assert_eq!(prompt, Prompt::typed("<|im_end|>"));
    let prompt = render("<{{ messages[0].content }}|im_end|>", &[("user", "")]).unwrap();
    assert_eq!(
        prompt,
        Prompt::markup("<|im_end|>"),
        "nothing of it was typed"
    );
}

#[test]
fn spellings_in_tools_calls_names_and_variables_are_literal_too() {
    let controls = controls();
    let list = [json!({
        "role": "<|im_end|>",
        "content": [{ "type": "text", "text": "[INST]" }],
        "tool_calls": [{ "<|im_end|>": 1, "arguments": { "deep": "<|im_start|>" } }],
    })];
    let tools = [json!({ "name": "[/INST]" })];
    let mut request = request(&list, &controls);
    request.tools = &tools;
    request.extra.insert("note".into(), "<|im_end|>".into());
    let template = "{{ messages[0].role }}{{ messages[0].content[0].text }}\
         {{ messages[0].tool_calls | tojson }}{{ tools | tojson }}{{ note }}<|im_end|>";
    let prompt = ChatTemplate::compile(template)
        .unwrap()
        .render(&request)
        .unwrap();
    let literal: String = prompt
        .literals
        .iter()
        .map(|range| &prompt.text[range.clone()])
        .collect();
    assert_eq!(
        literal,
        "<|im_end|>[INST]<|im_end|><|im_start|>[/INST]<|im_end|>"
    );
    assert!(
        !prompt.is_literal(&(prompt.text.len() - 10..prompt.text.len())),
        "the template's own"
    );
}

#[test]
fn content_with_every_noncharacter_passes_byte_for_byte() {
    let mut content: String = ('\u{fdd0}'..='\u{fdef}').collect();
    for plane in 0..=0x10_u32 {
        content.extend(
            [plane << 16 | 0xfffe, plane << 16 | 0xffff].map(|c| char::from_u32(c).unwrap()),
        );
    }
    content.push_str("<|im_end|>");
    assert_eq!(literal_parts(&content), ["<|im_end|>"]);
}

/// Whatever was typed comes through unchanged, and no control spelling overlaps it outside the
/// literal ranges: the template's own are exactly the ones left.
#[test]
fn random_messages_pass_unchanged_and_add_no_control_token() {
    let parts = [
        "<|im_end|>",
        "<|im_start|>",
        "<|im_",
        "end|>",
        "|>",
        "<",
        "[INST]",
        "[/INST",
        "]",
        "a[",
        "é",
        "日",
        " ",
        "\n",
        "\u{fdd0}",
        "👍🏽",
        "user",
    ];
    let controls = controls();
    let mut random = Random::new(23);
    for _ in 0..1_500 {
        let turns: Vec<String> = (0..1 + random.below(3))
            .map(|_| {
                (0..random.below(8))
                    .map(|_| parts[random.below(parts.len())])
                    .collect()
            })
            .collect();
        let list: Vec<(&str, &str)> = turns.iter().map(|turn| ("user", turn.as_str())).collect();
        let prompt = render(CHAT_ML, &list).unwrap();
        let mut expected = Prompt::default();
        for turn in &turns {
            expected.push_markup("<|im_start|>user\n");
            expected.push_typed(turn);
            expected.push_markup("<|im_end|>\n");
        }
        expected.push_markup("<|im_start|>assistant\n");
        assert_eq!(prompt.text, expected.text);
        let matched = |prompt: &Prompt| -> Vec<_> {
            let found = controls.find(&prompt.text).map(|found| found.range);
            found.filter(|range| !prompt.is_literal(range)).collect()
        };
        assert_eq!(matched(&prompt), matched(&expected), "{turns:?}");
    }
}

const ENDLESS: &str =
    "{% for a in range(10000) %}{% for b in range(10000) %}x{% endfor %}{% endfor %}";
const NO_SYSTEM: &str = "{% if messages[0].role == 'system' %}\
     {{ raise_exception('System role not supported') }}{% endif %}";
const ALTERNATE: &str = "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\
     {{ raise_exception('Roles must alternate') }}{% endif %}{% endfor %}";
const SHORT: &str = "{% for m in messages %}[{{ m.role[0] }}:{{ m.content }}]{% endfor %}";

/// One conversation and what becomes of it.
struct Refusal {
    /// Parts of the template; none: the model has no template.
    template: &'static [&'static str],
    turns: &'static [(&'static str, &'static str)],
    text: &'static str,
    /// How the reason begins; empty: the template was used as it is.
    reason: &'static str,
}

const REFUSALS: &[Refusal] = &[
    Refusal {
        template: &[SHORT],
        turns: &[("system", "s"), ("user", "a")],
        text: "[s:s][u:a]",
        reason: "",
    },
    Refusal {
        template: &[NO_SYSTEM, SHORT],
        turns: &[("system", "s"), ("user", "a")],
        text: "[u:s\n\na]",
        reason: "the chat template refuses this conversation: System role not supported; \
                 the system text was put into the first question",
    },
    Refusal {
        template: &[NO_SYSTEM, SHORT],
        turns: &[("system", ""), ("user", "a")],
        text: "[u:a]",
        reason: "the chat template refuses this conversation: System role not supported",
    },
    Refusal {
        template: &[ALTERNATE, SHORT],
        turns: &[("user", "a"), ("user", "b")],
        text: "[u:a\n\nb]",
        reason: "the chat template refuses this conversation: Roles must alternate; \
                 neighbouring turns of one side were joined",
    },
    // An answer that was stopped before it began.
    Refusal {
        template: &[ALTERNATE, SHORT],
        turns: &[("user", "a"), ("assistant", ""), ("user", "b")],
        text: "[u:a][a:][u:b]",
        reason: "",
    },
    Refusal {
        template: &[ALTERNATE, SHORT],
        turns: &[
            ("user", "a"),
            ("user", "b"),
            ("assistant", ""),
            ("user", "c"),
        ],
        text: "[u:a\n\nb\n\nc]",
        reason: "the chat template refuses this conversation: Roles must alternate",
    },
    Refusal {
        template: &[NO_SYSTEM, ALTERNATE, SHORT],
        turns: &[
            ("system", "s"),
            ("user", "a"),
            ("user", "b"),
            ("assistant", "c"),
        ],
        text: "[u:s\n\na\n\nb][a:c]",
        reason: "the chat template refuses this conversation: System role not supported; \
                 the system text was put into the first question and neighbouring turns of one \
                 side were joined",
    },
    Refusal {
        template: &["{{ raise_exception('never') }}"],
        turns: &[("system", "s"), ("user", "a")],
        text: "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\na<|im_end|>\n\
               <|im_start|>assistant\n",
        reason: "the chat template refuses this conversation: never; \
                 the built-in ChatML format is used",
    },
    Refusal {
        template: &["{{ 1 | martian }}"],
        turns: &[("user", "a")],
        text: "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n",
        reason: "the chat template fails in line 1: unknown filter",
    },
    Refusal {
        template: &[ENDLESS],
        turns: &[("user", "a")],
        text: "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n",
        reason: "the chat template does not come to an end; the built-in ChatML format is used",
    },
    Refusal {
        template: &["{% if"],
        turns: &[("user", "a")],
        text: "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n",
        reason: "the chat template is not valid in line 1",
    },
    Refusal {
        template: &[],
        turns: &[("user", "<|im_end|>")],
        text: "<|im_start|>user\n<|im_end|><|im_end|>\n<|im_start|>assistant\n",
        reason: "this model brings no chat template, so the built-in ChatML format is used",
    },
];

#[test]
fn a_conversation_that_the_template_refuses_is_rendered_another_way_and_says_so() {
    let controls = controls();
    for case in REFUSALS {
        let template = case.template.concat();
        let template = (!case.template.is_empty()).then_some(template.as_str());
        let format = ChatFormat::new(template, &controls);
        let messages = messages(case.turns);
        let rendered = format.render(&request(&messages, &controls));
        assert_eq!(rendered.prompt.text, case.text, "{template:?}");
        let said = rendered
            .fallback
            .map(|fallback| fallback.to_string())
            .unwrap_or_default();
        let agrees = said.starts_with(case.reason) && said.is_empty() == case.reason.is_empty();
        assert!(agrees, "{said:?} instead of {:?}", case.reason);
    }
}

#[test]
fn without_chat_ml_tokens_the_built_in_format_is_plain_and_stops_before_the_users_turn() {
    let none = ControlSpellings::default();
    let format = ChatFormat::new(None, &none);
    let messages = messages(&[
        ("system", "Be kind."),
        ("user", "User: hi"),
        ("assistant", "ho"),
    ]);
    let rendered = format.render(&request(&messages, &none));
    let expected = "Be kind.\n\nUser: User: hi\n\nAssistant: ho\n\nAssistant:";
    assert_eq!(rendered.prompt.text, expected);
    assert_eq!(format.end_strings(), ["\nUser:"]);
    assert_eq!(rendered.end_strings, ["\nUser:"]);
    assert!(format.fallback().is_some());
    // The same where a template is there and fails for this conversation only.
    let format = ChatFormat::new(Some("{{ 1 | martian }}"), &none);
    assert_eq!(format.end_strings(), [""; 0]);
    let rendered = format.render(&request(&messages, &none));
    assert_eq!(rendered.prompt.text, expected);
    assert_eq!(rendered.end_strings, ["\nUser:"]);
}

#[test]
fn end_markers_of_the_template_that_are_no_tokens_end_a_reply_as_strings() {
    let none = ControlSpellings::default();
    let known = controls();
    for (controls, expected) in [(&none, vec!["<|im_end|>"]), (&known, Vec::new())] {
        let format = ChatFormat::new(Some(CHAT_ML), controls);
        assert_eq!(format.end_strings(), expected);
        assert_eq!(format.fallback(), None);
    }
}

#[test]
fn a_turn_that_ends_without_a_token_ends_where_the_users_begins() {
    let vicuna = "{% for m in messages %}{% if m.role == 'user' %}{{ 'USER: ' + m.content + ' ' }}\
         {% else %}{{ 'ASSISTANT: ' + m.content + END }}{% endif %}{% endfor %}";
    let cases = [
        (vicuna.replace("END", "'\n\n'"), vec!["\n\nUSER:"]),
        (vicuna.replace("END", "eos_token"), vec![]),
        (vicuna.replace("END", "'<|im_end|>'"), vec![]),
        // A token of this vocabulary, whatever it means.
        (vicuna.replace("END", "'[INST]'"), vec![]),
        (vicuna.replace("END", "'</s>'"), vec!["</s>"]),
        (vicuna.replace("END", "'x' * 300"), vec![]),
        (SHORT.to_owned(), vec![]),
        ([NO_SYSTEM, "{{ messages | length }}"].concat(), vec![]),
        (ENDLESS.to_owned(), vec![]),
        ("{{ raise_exception('never') }}".to_owned(), vec![]),
    ];
    for (template, expected) in cases {
        let format = ChatFormat::new(Some(&template), &controls());
        assert_eq!(format.end_strings(), expected, "{template}");
    }
}

/// Values that no stack of an ordinary thread holds.
#[test]
fn values_within_values_are_dropped_and_refused_and_overflow_nothing() {
    let nested = format!("{}n.x{}", "[".repeat(30), "]".repeat(30));
    let lists = "{% for a in range(100000) %}{% for b in range(99) %}{% set n.x = NESTED %}{% endfor %}\
         {% endfor %}";
    let cases = [
        (
            format!("{}{{{{ 1 }}}}", lists.replace("NESTED", &nested)),
            Err(TemplateError::Endless),
        ),
        (
            format!("{}{{{{ 1 }}}}", lists.replace("NESTED", "{'a': n.x}")),
            Err(TemplateError::Endless),
        ),
        (
            "{% for a in range(1000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}".to_owned(),
            Err(TemplateError::Failed {
                line: 1,
                message: "invalid operation: a value is nested too deeply".into(),
            }),
        ),
        (
            "{% set n.x = n %}{{ n }}".to_owned(),
            Err(TemplateError::Failed {
                line: 1,
                message: "invalid operation: a value is nested too deeply".into(),
            }),
        ),
        (
            "{% set n.x = n %}{{ raise_exception(n) }}".to_owned(),
            Err(TemplateError::Refused {
                message: format!("{}…", "{'x': ".repeat(67).get(..400).unwrap()),
            }),
        ),
        (
            "{{ [1, 'a\"b', [2.0, none], {'k': true, 'l': []}] }}{{ {} }}".to_owned(),
            Ok("[1, 'a\"b', [2.0, None], {'k': True, 'l': []}]{}".to_owned()),
        ),
    ];
    for (template, expected) in cases {
        let template = format!("{{% set n = namespace(x=1) %}}{template}");
        let found = render(&template, &[("user", "hi")]).map(|prompt| prompt.text);
        assert_eq!(found, expected, "{template}");
    }
}
