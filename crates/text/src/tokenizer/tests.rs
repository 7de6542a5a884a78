//! Behaviour on vocabularies made for it; the golden data is a test of its own.

use candor_testkit::Random;

use super::*;

const BYTES: std::ops::RangeInclusive<u8> = 0..=255;

/// A byte-level vocabulary: 256 bytes, the results of the merges, then special tokens.
fn byte_level(pre: Option<&str>, merges: &[&str], specials: &[(&str, TokenType)]) -> TokenizerSpec {
    let letters = bytes::ByteLetters::new();
    let mut tokens: Vec<String> = BYTES.map(|byte| letters.letter(byte).to_string()).collect();
    tokens.extend(merges.iter().map(|merge| merge.replacen(' ', "", 1)));
    let mut types = vec![TokenType::Normal; tokens.len()];
    for (spelling, kind) in specials {
        tokens.push((*spelling).to_owned());
        types.push(*kind);
    }
    TokenizerSpec {
        model: "gpt2".into(),
        pre: pre.map(str::to_owned),
        merges: merges.iter().map(|merge| (*merge).to_owned()).collect(),
        tokens,
        types,
        ..TokenizerSpec::default()
    }
}

/// A SentencePiece vocabulary: unknown, end, the 256 bytes, then pieces with their scores.
fn sentence_piece(pieces: &[(&str, f32)]) -> TokenizerSpec {
    let mut spec = TokenizerSpec {
        model: "llama".into(),
        unk: Some(0),
        ..Default::default()
    };
    let mut push = |token: String, kind, score| {
        spec.tokens.push(token);
        spec.types.push(kind);
        spec.scores.push(score);
    };
    push("<unk>".into(), TokenType::Unknown, 0.0);
    push("<end>".into(), TokenType::Control, 0.0);
    for byte in BYTES {
        push(format!("<0x{byte:02X}>"), TokenType::Byte, 0.0);
    }
    for (piece, score) in pieces {
        push((*piece).to_owned(), TokenType::Normal, *score);
    }
    spec
}

const SPECIALS: &[(&str, TokenType)] = &[
    ("<|end|>", TokenType::Control),
    ("<|x|>", TokenType::Control),
    ("<unk>", TokenType::Unknown),
    ("<think>", TokenType::UserDefined),
    ("[PAD]", TokenType::Unused),
];

fn spelled(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    let piece = |id: &u32| String::from_utf8_lossy(tokenizer.piece(*id, Show::Control)).into();
    ids.iter().map(piece).collect()
}

#[test]
fn vocabularies_that_cannot_be_exact_are_refused_by_name() {
    let good = || byte_level(Some("qwen2"), &["a b"], SPECIALS);
    let change = |change: fn(&mut TokenizerSpec)| {
        let mut spec = good();
        change(&mut spec);
        Tokenizer::from_spec(&spec).map(|_| ())
    };
    let tokens = good().tokens.len();
    let cases = [
        (change(|_| {}), Ok(())),
        (change(|spec| spec.types.clear()), Ok(())),
        (change(|spec| spec.pre = None), Ok(())),
        (change(|spec| spec.pre = Some(String::new())), Ok(())),
        (
            change(|spec| spec.pre = Some("martian".into())),
            Err(TokenizerError::UnknownPreTokenizer {
                found: "martian".into(),
            }),
        ),
        (
            change(|spec| spec.model = "rwkv".into()),
            Err(TokenizerError::UnknownModel {
                found: "rwkv".into(),
            }),
        ),
        (
            change(|spec| spec.tokens.clear()),
            Err(TokenizerError::Empty),
        ),
        (
            change(|spec| spec.types.truncate(3)),
            Err(TokenizerError::TypeCount {
                expected: tokens,
                found: 3,
            }),
        ),
        (
            change(|spec| spec.model = "llama".into()),
            Err(TokenizerError::ScoreCount {
                expected: tokens,
                found: 0,
            }),
        ),
        (
            change(|spec| spec.merges.push("nospace".into())),
            Err(TokenizerError::BadMerge {
                index: 1,
                found: "nospace".into(),
            }),
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
}

#[test]
fn merges_with_parts_that_are_no_tokens_are_passed_over() {
    let mut spec = byte_level(Some("qwen2"), &["a b", "ab c"], &[]);
    let long = "x".repeat(1000);
    spec.merges
        .splice(0..0, ["zz zz".into(), format!("a {long}"), "日 本".into()]);
    let tokenizer = Tokenizer::from_spec(&spec).unwrap();
    let ids = tokenizer
        .encode(&Prompt::typed("abcab"), Ends::None)
        .unwrap();
    assert_eq!(spelled(&tokenizer, &ids), ["abc", "ab"]);
}

#[test]
fn a_byte_without_a_token_is_an_error_and_not_dropped() {
    let mut spec = byte_level(Some("qwen2"), &[], &[]);
    spec.tokens[usize::from(b'q')] = "something else".into();
    let tokenizer = Tokenizer::from_spec(&spec).unwrap();
    let found = tokenizer.encode(&Prompt::typed("aq"), Ends::None);
    assert_eq!(found, Err(TokenizerError::NoTokenForByte { byte: b'q' }));
}

#[test]
fn begin_and_end_tokens_go_where_the_file_and_the_caller_want_them() {
    let mut spec = byte_level(Some("qwen2"), &[], SPECIALS);
    let id = |spelling: &str| spec.tokens.iter().position(|t| t == spelling).unwrap() as u32;
    let (bos, eos) = (id("<|x|>"), id("<|end|>"));
    (spec.bos, spec.eos) = (Some(bos), Some(eos));
    (spec.add_bos, spec.add_eos) = (Some(true), Some(true));
    let a = u32::from(b'a');
    let cases = [
        ("a", Ends::None, vec![a]),
        ("a", Ends::Model, vec![bos, a, eos]),
        ("a", Ends::Chat, vec![bos, a]),
        ("<|x|>a", Ends::Model, vec![bos, bos, a, eos]),
        ("<|x|>a", Ends::Chat, vec![bos, a]),
        ("", Ends::Chat, vec![bos]),
    ];
    let tokenizer = Tokenizer::from_spec(&spec).unwrap();
    for (text, ends, expected) in cases {
        let found = tokenizer.encode(&Prompt::markup(text), ends).unwrap();
        assert_eq!(found, expected, "{text:?} {ends:?}");
    }
    (spec.bos, spec.eos) = (Some(99_999), None);
    let tokenizer = Tokenizer::from_spec(&spec).unwrap();
    assert_eq!(
        tokenizer.encode(&Prompt::markup("a"), Ends::Model).unwrap(),
        [a]
    );
    assert_eq!(
        (tokenizer.bos(), tokenizer.eos()),
        (None, None),
        "an id outside the vocabulary"
    );
}

#[test]
fn end_of_turn_markers_end_a_reply_even_if_the_file_calls_them_text() {
    let specials = [
        ("<|im_end|>", TokenType::Normal),
        ("<|x|>", TokenType::Control),
        ("<end_of_turn>", TokenType::UserDefined),
    ];
    let mut spec = byte_level(Some("qwen2"), &[], &specials);
    spec.eos = Some(99_999);
    let tokenizer = Tokenizer::from_spec(&spec).unwrap();
    assert_eq!(tokenizer.end_ids(), [256, 258]);
    assert!(tokenizer.is_end(256) && !tokenizer.is_end(257) && !tokenizer.is_end(99_999));
    assert_eq!(
        tokenizer.piece(256, Show::Text),
        b"",
        "an end marker is not shown"
    );
    assert_eq!(tokenizer.piece(256, Show::Control), b"<|im_end|>");
    assert_eq!(tokenizer.piece(99_999, Show::Control), b"");
    assert!(tokenizer.controls().contains("<|im_end|>"));
    spec.eot = Some(257);
    assert_eq!(
        Tokenizer::from_spec(&spec).unwrap().end_ids(),
        [256, 257, 258]
    );
}

#[test]
fn pieces_of_equal_score_merge_from_left_to_right() {
    let tokenizer = |pieces: &[(&str, f32)]| {
        let mut spec = sentence_piece(pieces);
        spec.add_space_prefix = Some(false);
        Tokenizer::from_spec(&spec).unwrap()
    };
    let abc = [("a", 0.0), ("b", 0.0), ("c", 0.0), ("d", 0.0)];
    type Pieces<'p> = &'p [(&'p str, f32)];
    let cases: &[(Pieces<'_>, &str, &[&str])] = &[
        // By rank of single merges, the piece that stands first in the vocabulary would win.
        (&[("bc", -1.0), ("ab", -1.0)], "abc", &["ab", "c"]),
        (&[("bc", -1.0), ("ab", -2.0)], "abc", &["a", "bc"]),
        (&[("aa", -1.0), ("aaa", -1.0)], "aaaaa", &["aaa", "aa"]),
        (
            &[("ab", -1.0), ("cd", -1.0), ("abcd", -1.0), ("bc", -1.0)],
            "abcd",
            &["abcd"],
        ),
        (&[], "aéd", &["a", "\u{fffd}", "\u{fffd}", "d"]),
        (
            &[("<end>", 9.0), ("<", 0.0), ("end", 0.0)],
            "<x",
            &["<", "x"],
        ),
    ];
    for (pieces, text, expected) in cases {
        let tokenizer = tokenizer(&[&abc, *pieces].concat());
        let ids = tokenizer.encode(&Prompt::typed(*text), Ends::None).unwrap();
        assert_eq!(
            &spelled(&tokenizer, &ids),
            expected,
            "{text:?} with {pieces:?}"
        );
    }
}

#[test]
fn cutting_at_spaces_changes_nothing() {
    let mut pieces = vec![
        ("▁", -9.0),
        ("▁▁", -3.0),
        ("▁a", -2.0),
        ("ab", -1.0),
        ("▁ab", -4.0),
    ];
    let cut = Tokenizer::from_spec(&sentence_piece(&pieces)).unwrap();
    // One piece that goes across a space forbids cutting; it cannot be merged, as it has no parts.
    pieces.push(("xyz▁q", 0.0));
    let whole = Tokenizer::from_spec(&sentence_piece(&pieces)).unwrap();
    let mut random = Random::new(5);
    for _ in 0..500 {
        let text: String = (0..random.below(12))
            .map(|_| ['a', 'b', ' '][random.below(3)])
            .collect();
        let prompt = Prompt::typed(text);
        assert_eq!(
            cut.encode(&prompt, Ends::None),
            whole.encode(&prompt, Ends::None)
        );
    }
}

/// Typed text made of whole and broken control spellings never becomes a control token, decodes
/// to itself, and has the ids of a vocabulary that has no control tokens at all.
#[test]
fn typed_text_never_becomes_a_control_token() {
    let merges = ["< |", "e n", "en d", "| >", "<| end", "<|end |>"];
    // The file's own merges lead to a control token; they must not be followed.
    let mut spec = byte_level(Some("llama-bpe"), &merges[..5], SPECIALS);
    spec.merges.push(merges[5].to_owned());
    let tokenizer = Tokenizer::from_spec(&spec).unwrap();
    let mut without = spec.clone();
    for (token, kind) in without.tokens.iter_mut().zip(&mut without.types) {
        if matches!(kind, TokenType::Control | TokenType::Unknown) {
            (*kind, *token) = (TokenType::Unused, "never spelled \u{10ffff}".into());
        }
    }
    let without = Tokenizer::from_spec(&without).unwrap();
    let parts = [
        "<|end|>", "<|x|>", "<unk>", "<think>", "<|", "end", "|>", "<", "é", " ", "\n",
    ];
    let mut random = Random::new(11);
    for _ in 0..2_000 {
        let text: String = (0..random.below(9))
            .map(|_| parts[random.below(parts.len())])
            .collect();
        let ids = tokenizer
            .encode(&Prompt::typed(text.as_str()), Ends::None)
            .unwrap();
        assert!(!ids.iter().any(|&id| tokenizer.is_control(id)), "{text:?}");
        let bytes = ids
            .iter()
            .flat_map(|&id| tokenizer.piece(id, Show::Text))
            .copied();
        assert_eq!(bytes.collect::<Vec<u8>>(), text.as_bytes());
        let plain = without
            .encode(&Prompt::typed(text.as_str()), Ends::None)
            .unwrap();
        assert_eq!(ids, plain, "{text:?}");
    }
}

#[test]
fn a_million_characters_with_and_without_a_break_come_back_whole() {
    let byte_level = byte_level(Some("qwen2"), &["a a", "aa aa", "Ġ Ġ", "a b"], SPECIALS);
    let sentence_piece = sentence_piece(&[("▁", -9.0), ("aa", -1.0), ("aaaa", -2.0), ("a", -3.0)]);
    for spec in [byte_level, sentence_piece] {
        let tokenizer = Tokenizer::from_spec(&spec).unwrap();
        for unit in [
            "a", " ", "\n", "ab ", "'", "7", "e\u{301}", "<|end|>", " \n",
        ] {
            let text = unit.repeat(1_000_000 / unit.len());
            let ids = tokenizer
                .encode(&Prompt::typed(text.as_str()), Ends::None)
                .unwrap();
            let bytes: Vec<u8> = ids
                .iter()
                .flat_map(|&id| tokenizer.piece(id, Show::Text))
                .copied()
                .collect();
            // SentencePiece puts a space in front.
            assert!(
                bytes.ends_with(text.as_bytes()) && bytes.len() <= text.len() + 1,
                "{unit:?}"
            );
        }
    }
}
