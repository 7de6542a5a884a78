//! Cutting by every scheme, against words written by hand.

use std::convert::Infallible;

use super::*;

fn words<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
    let scheme = Scheme::by_name(Some(name)).unwrap();
    let mut words = Vec::new();
    let Ok(()) = scheme.split::<Infallible>(text, &mut |word| {
        words.push(word);
        Ok(())
    });
    words
}

/// Name, text, words.
const CASES: &[(&str, &str, &[&str])] = &[
    (
        "gpt-2",
        "I'll go  to 123 é!?\n\n x ",
        &[
            "I", "'ll", " go", " ", " to", " 123", " é", "!?", "\n\n", " x", " ",
        ],
    ),
    ("gpt-2", "don'T '", &["don", "'", "T", " '"]),
    ("smollm", "a 12\t", &["a", " ", "1", "2", "\t"]),
    (
        "llama-bpe",
        "I'LL (x) 12345  y",
        &["I", "'LL", " (", "x", ")", " ", "123", "45", " ", " y"],
    ),
    ("llama-bpe", "a.\r\n \n b", &["a", ".\r\n", " \n", " b"]),
    ("qwen2", "x= 12", &["x", "=", " ", "1", "2"]),
    ("qwen2", "e\u{301}a", &["e", "\u{301}a"]),
    ("qwen35", "e\u{301}a \u{301}", &["e\u{301}a", " \u{301}"]),
    (
        "deepseek-llm",
        "ab 12, x\n日本 ",
        &["ab", " ", "12", ",", " x", "\n", "日本", " "],
    ),
    ("default", "a1234=b", &["a", "123", "4", "=", "b"]),
    (
        "gpt-4o",
        "HTMLParser's camelCase ABC 1234 a//\n",
        &[
            "HTMLParser's",
            " camel",
            "Case",
            " ABC",
            " ",
            "123",
            "4",
            " a",
            "//\n",
        ],
    ),
    (
        "gpt-4o",
        "ÄÖü äÖ हिन्दी \u{301}A 日本AB日",
        &["ÄÖü", " ä", "Ö", " हिन्दी", " \u{301}", "A", " 日本AB日"],
    ),
    ("gpt-4o", "日AB", &["日", "AB"]),
    ("tekken", "It's 12", &["It", "'s", " ", "1", "2"]),
    (
        "deepseek-v3",
        "a.b 12345 (x) ==\n\nかな漢x\u{0}\u{200d}!",
        &[
            "a",
            ".b",
            " ",
            "123",
            "45",
            " (",
            "x",
            ")",
            " ==\n\n",
            "かな漢",
            "x",
            "\u{0}\u{200d}",
            "!",
        ],
    ),
    (
        "deepseek-coder",
        "ab 12, +x\n日本 ",
        &["ab", " ", "1", "2", ",", " +", "x", "\n", "日本", " "],
    ),
    ("falcon", "`a`1234", &["`", "a", "`", "123", "4"]),
    ("bloom", "a1, b (c)", &["a1", ",", " b", " (", "c", ")"]),
    ("viking", "a12. ", &["a", "1", "2", ". "]),
    ("seed-coder", "a!\nb", &["a", "!", "\n", "b"]),
    ("ufakzeka", "a's", &["a", "'s"]),
    ("ufakzeka", "a 'demi", &["a", " '", "demi"]),
];

#[test]
fn words_are_cut_as_the_expressions_say() {
    for (name, text, expected) in CASES {
        assert_eq!(&words(name, text), expected, "{name}: {text:?}");
    }
}

#[test]
fn words_joined_are_the_text_and_none_is_empty() {
    let parts = [
        "a", "É", "1", "²", " ", "\u{a0}", "\n", "\r", "'", "s", "!", "日", "\u{301}",
    ];
    let mut state = 7_u32;
    for _ in 0..3_000 {
        let mut text = String::new();
        for _ in 0..state % 12 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(parts[(state >> 16) as usize % parts.len()]);
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) >> 1;
        for name in SCHEMES.iter().map(|scheme| scheme.names[0]) {
            let words = words(name, &text);
            assert_eq!(words.concat(), text, "{name}");
            assert!(
                words.iter().all(|word| !word.is_empty()),
                "{name}: {text:?}"
            );
        }
    }
}

/// A scanner that looked at a long run again for each of its characters would not come to an end.
#[test]
fn long_runs_are_cut_in_one_pass() {
    let units = [
        "a", "A", "aA", "日A", "A日", "7", "!", "'", "\u{301}", "\u{0}", " ", "\n", " \n",
        "\u{3000}", "\u{0} ", "'s", "/\n", "`",
    ];
    for unit in units {
        let text = unit.repeat(60_000);
        for scheme in SCHEMES {
            assert_eq!(words(scheme.names[0], &text).concat(), text, "{unit:?}");
        }
    }
}

#[test]
fn every_name_is_one_that_was_held_against_llama_cpp() {
    let golden = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/golden/tokenizer/made/schemes.json"
    );
    let golden: serde_json::Value =
        serde_json::from_slice(&std::fs::read(golden).unwrap()).unwrap();
    let schemes = golden["schemes"].as_array().unwrap();
    let names = schemes
        .iter()
        .flat_map(|scheme| scheme["names"].as_array().unwrap());
    let mut checked: Vec<_> = names.map(|name| name.as_str().unwrap()).collect();
    let mut known: Vec<_> = SCHEMES
        .iter()
        .flat_map(|scheme| scheme.names)
        .copied()
        .collect();
    checked.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, checked);
}
