//! Which pre-tokenizer name stands for which expressions: a fact of the GGUF ecosystem (the table
//! in llama.cpp's `llama-vocab.cpp`). A name without a row is refused.

use super::stages::{
    Stage, is_bloom_word, is_deepseek_ideograph, is_deepseek_symbol, is_falcon_symbol,
    is_ideograph_or_kana, is_newline, is_punctuation_or_operator, is_space,
};
use super::words::{Contractions, Letters, Words, is_letter_or_mark, is_symbol, is_symbol_no_mark};
use super::{Scheme, WholeWords};
use crate::tokenizer::classes::{is_deepseek_letter, is_letter, is_punctuation};

const LLAMA3: Words = Words {
    contractions: Contractions::Words,
    letters: Letters::Run(is_letter),
    digits_max: 3,
    is_symbol,
    after_symbols: is_newline,
};
const QWEN2: Words = Words {
    digits_max: 1,
    ..LLAMA3
};
const QWEN35: Words = Words {
    letters: Letters::Run(is_letter_or_mark),
    is_symbol: is_symbol_no_mark,
    ..QWEN2
};
/// Turkish has endings behind an apostrophe that are no contractions.
const UFAKZEKA: Words = Words {
    contractions: Contractions::None,
    ..QWEN2
};
const SEED_CODER: Words = Words {
    after_symbols: |_| false,
    ..QWEN2
};
const GPT4O: Words = Words {
    contractions: Contractions::Endings,
    letters: Letters::Cased,
    after_symbols: is_newline_or_slash,
    ..LLAMA3
};
const TEKKEN: Words = Words {
    contractions: Contractions::None,
    digits_max: 1,
    ..GPT4O
};

/// A scheme that merges every word and adds no begin token of its own accord.
const fn merged(names: &'static [&'static str], stages: &'static [Stage]) -> Scheme {
    Scheme {
        names,
        stages,
        whole_words: WholeWords::Merged,
        add_bos: false,
    }
}

pub(super) static SCHEMES: &[Scheme] = &[
    merged(
        &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "mpt",
            "olmo",
            "jais",
            "gigachat",
            "a.x-4.0",
            "mellum",
            "exaone4",
            "trillion",
            "granite-docling",
        ],
        &[Stage::Gpt2],
    ),
    merged(
        &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        &[Stage::Each(char::is_numeric), Stage::Gpt2],
    ),
    Scheme {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
        ],
        stages: &[Stage::Words(LLAMA3)],
        whole_words: WholeWords::Taken,
        add_bos: true,
    },
    merged(
        &["dbrx", "smaug-bpe", "chatglm-bpe"],
        &[Stage::Words(LLAMA3)],
    ),
    Scheme {
        names: &["glm4", "glm5", "minicpm5"],
        stages: &[Stage::Words(LLAMA3)],
        whole_words: WholeWords::Taken,
        add_bos: false,
    },
    merged(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "stablelm2",
            "hunyuan",
            "megrez",
            "kormo",
            "solar-open",
            "grok-2",
            "bailingmoe",
            "bailingmoe2",
            "llada-moe",
        ],
        &[Stage::Words(QWEN2)],
    ),
    merged(&["qwen35"], &[Stage::Words(QWEN35)]),
    merged(&["ufakzeka"], &[Stage::Words(UFAKZEKA)]),
    merged(&["seed-coder"], &[Stage::Words(SEED_CODER)]),
    merged(
        &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        &[Stage::Words(GPT4O)],
    ),
    Scheme {
        names: &["tekken"],
        stages: &[Stage::Words(TEKKEN)],
        whole_words: WholeWords::Taken,
        add_bos: true,
    },
    merged(
        &["deepseek-llm"],
        &[
            Stage::Each(is_newline),
            Stage::SpacedRuns(char::is_whitespace, is_deepseek_letter),
            Stage::SpacedRuns(char::is_whitespace, is_deepseek_symbol),
            Stage::EndSpace,
            Stage::Runs(is_deepseek_ideograph),
            Stage::Runs(char::is_numeric),
        ],
    ),
    merged(
        &["deepseek-coder"],
        &[
            Stage::Each(is_newline),
            Stage::SpacedRuns(char::is_whitespace, is_letter),
            Stage::SpacedRuns(char::is_whitespace, is_punctuation),
            Stage::Runs(is_deepseek_ideograph),
            Stage::Each(char::is_numeric),
        ],
    ),
    merged(
        &["deepseek-v3", "hunyuan-dense", "joyai-llm"],
        &[
            Stage::Numbers(3),
            Stage::Runs(is_ideograph_or_kana),
            Stage::DeepSeek3,
        ],
    ),
    merged(
        &["falcon"],
        &[Stage::Runs(is_falcon_symbol), Stage::Gpt2, Stage::Triples],
    ),
    merged(
        &["bloom", "poro-chat", "gpt3-finnish"],
        &[Stage::SpacedRuns(is_space, is_bloom_word)],
    ),
    merged(
        &["viking"],
        &[
            Stage::SpacedRuns(is_space, is_bloom_word),
            Stage::Each(char::is_numeric),
        ],
    ),
    merged(
        &["default"],
        &[
            Stage::Runs(is_punctuation_or_operator),
            Stage::Gpt2,
            Stage::Runs(char::is_numeric),
            Stage::Triples,
        ],
    ),
];

/// `[\r\n/]`
fn is_newline_or_slash(c: char) -> bool {
    is_newline(c) || c == '/'
}
