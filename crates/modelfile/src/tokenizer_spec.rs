//! The vocabulary of a model as its file states it, before anything is built of it.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenType {
    /// Ordinary text.
    Normal = 1,
    /// Stands for what the vocabulary cannot write.
    Unknown = 2,
    /// Steers the model and is not text.
    Control = 3,
    /// Text that is always one token.
    UserDefined = 4,
    /// A place that no text uses.
    Unused = 5,
    /// One byte.
    Byte = 6,
}

impl TokenType {
    /// The type with this number in a file.
    pub fn from_number(number: i64) -> Option<Self> {
        Some(match number {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return None,
        })
    }
}

/// The kind of a vocabulary that merges characters by rank and spells a space as a mark, as the
/// tokenizer files of Llama 2 do. GGUF files of this kind give it the name of their family.
pub const CHARACTER_MERGES: &str = "character-merges";

/// What a file says about its tokens. Ids are as stated: they may lie outside the
/// vocabulary, and whoever builds a tokenizer decides what that means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenizerSpec {
    /// The kind of vocabulary: `gpt2` is byte-level BPE, `llama` SentencePiece, `gemma4` and
    /// [`CHARACTER_MERGES`] merge characters.
    pub model: String,
    /// The name of the rule that splits text before BPE.
    pub pre: Option<String>,
    /// The tokens' spellings.
    pub tokens: Vec<String>,
    /// What each token is; empty if the file does not say.
    pub types: Vec<TokenType>,
    /// Each token's score; empty if the file has none.
    pub scores: Vec<f32>,
    /// The merges of BPE in their order, two spellings with a space between.
    pub merges: Vec<String>,
    /// SentencePiece's table of character normalisation, as it is stored.
    pub precompiled_charsmap: Vec<u8>,
    /// Begins a text.
    pub bos: Option<u32>,
    /// Ends a text.
    pub eos: Option<u32>,
    /// Ends a turn.
    pub eot: Option<u32>,
    /// Ends a message that another follows.
    pub eom: Option<u32>,
    /// Stands for what the vocabulary cannot write.
    pub unk: Option<u32>,
    /// Separates.
    pub sep: Option<u32>,
    /// Fills up.
    pub pad: Option<u32>,
    /// Stands for a masked token.
    pub mask: Option<u32>,
    /// Fill in the middle: padding.
    pub fim_pad: Option<u32>,
    /// Fill in the middle: the repository's name.
    pub fim_rep: Option<u32>,
    /// Fill in the middle: between files.
    pub fim_sep: Option<u32>,
    /// Whether a text gets `bos` in front.
    pub add_bos: Option<bool>,
    /// Whether a text gets `eos` behind.
    pub add_eos: Option<bool>,
    /// Whether a text gets a space in front.
    pub add_space_prefix: Option<bool>,
    /// Whether runs of spaces become one.
    pub remove_extra_whitespaces: Option<bool>,
}
