//! Tiny models with seeded weights, written as GGUF files at test time.

use std::io;
use std::path::{Path, PathBuf};

use candor_quant::QuantType;

use crate::gguf::{Encoded, Gguf, Tensor, Value};
use crate::random::Random;
use crate::vocabulary::{END_OF_TEXT, TURN_END, Vocabulary};

/// The chat template of all tiny models: ChatML.
pub const CHAT_TEMPLATE: &str = "{% for message in messages %}\
{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Family {
    Llama,
    Qwen2,
}

/// A tiny model to be written: what is not said stays at a small default
/// (2 layers, 64 wide, 4 heads over 2, Q8_0).
///
/// ```
/// let bytes = candor_testkit::TinyModel::llama().layers(1).quant("F16").bytes();
/// assert!(bytes.starts_with(b"GGUF"));
/// ```
#[derive(Clone, Debug)]
pub struct TinyModel {
    family: Family,
    architecture: Option<String>,
    seed: u64,
    layers: usize,
    width: usize,
    heads: usize,
    kv_heads: usize,
    ffn: usize,
    context: u32,
    vocabulary: Vocabulary,
    quants: Vec<(String, &'static QuantType)>,
    tied: bool,
    rope_freqs: bool,
    version: u32,
    changes: Vec<Change>,
}

/// A deviation from the regular file, applied in order.
#[derive(Clone, Debug)]
enum Change {
    Set(String, Value),
    Unset(String),
    Add(Tensor),
    Drop(String),
    Rename(String, String),
}

impl TinyModel {
    /// A model of the llama family.
    pub fn llama() -> Self {
        Self::new(Family::Llama)
    }

    /// A model of the qwen2 family: with biases on Q, K and V.
    pub fn qwen2() -> Self {
        Self::new(Family::Qwen2)
    }

    fn new(family: Family) -> Self {
        Self {
            family,
            architecture: None,
            seed: 1,
            layers: 2,
            width: 64,
            heads: 4,
            kv_heads: 2,
            ffn: 128,
            context: 512,
            vocabulary: Vocabulary::new(0),
            quants: vec![(String::new(), &candor_quant::types::q8_0::TYPE)],
            tied: false,
            rope_freqs: false,
            version: 3,
            changes: Vec::new(),
        }
    }

    /// The seed of the weights.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many layers.
    pub fn layers(mut self, layers: usize) -> Self {
        self.layers = layers;
        self
    }

    /// The width of the embedding and of the feed-forward part, both whole blocks
    /// of the storage types that are used.
    pub fn width(mut self, width: usize, ffn: usize) -> Self {
        (self.width, self.ffn) = (width, ffn);
        self
    }

    /// Query heads, and the key and value heads that they share.
    pub fn heads(mut self, heads: usize, kv_heads: usize) -> Self {
        (self.heads, self.kv_heads) = (heads, kv_heads);
        self
    }

    /// The trained context length.
    pub fn context(mut self, tokens: u32) -> Self {
        self.context = tokens;
        self
    }

    /// Fills the vocabulary up to this many tokens (it has about 400 at least).
    pub fn vocabulary(mut self, len_min: usize) -> Self {
        self.vocabulary = Vocabulary::new(len_min);
        self
    }

    /// The storage type of all matrices, by its name.
    pub fn quant(self, name: &str) -> Self {
        self.quant_of("", name)
    }

    /// The storage type of the matrices whose name contains `part`; the last one
    /// said wins.
    pub fn quant_of(mut self, part: &str, name: &str) -> Self {
        let quant = candor_quant::by_name(name).expect("the name of a storage type");
        self.quants.push((part.to_owned(), quant));
        self
    }

    /// Without an output matrix of its own.
    pub fn tied(mut self) -> Self {
        self.tied = true;
        self
    }

    /// With `rope_freqs.weight`.
    pub fn rope_freqs(mut self) -> Self {
        self.rope_freqs = true;
        self
    }

    /// The name in `general.architecture`, with keys to match.
    pub fn architecture(mut self, name: &str) -> Self {
        self.architecture = Some(name.to_owned());
        self
    }

    /// The version that the file states.
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// The type number of a token, such as 1 for ordinary text.
    pub fn token_type(mut self, spelling: &str, number: i32) -> Self {
        let id = self.token_id(spelling).expect("a token of the vocabulary");
        self.vocabulary.types[id as usize] = number;
        self
    }

    /// The id of a token by its spelling.
    pub fn token_id(&self, spelling: &str) -> Option<u32> {
        self.vocabulary.id(spelling)
    }

    /// Sets or replaces a metadata entry.
    pub fn metadata(self, key: &str, value: Value) -> Self {
        self.change(Change::Set(key.to_owned(), value))
    }

    /// Leaves a metadata entry out.
    pub fn without_metadata(self, key: &str) -> Self {
        self.change(Change::Unset(key.to_owned()))
    }

    /// Adds a tensor of zeros.
    pub fn extra_tensor(self, name: &str, dims: &[u64], quant: &str) -> Self {
        let quant = candor_quant::by_name(quant).expect("the name of a storage type");
        let elems = dims.iter().product::<u64>() as usize;
        let bytes = vec![0; quant.bytes_for(elems).expect("whole blocks")];
        let tensor = Tensor {
            name: name.to_owned(),
            dims: dims.to_vec(),
            type_id: quant.id,
            bytes,
        };
        self.change(Change::Add(tensor))
    }

    /// Leaves a tensor out.
    pub fn without_tensor(self, name: &str) -> Self {
        self.change(Change::Drop(name.to_owned()))
    }

    /// Gives a tensor another name.
    pub fn rename_tensor(self, from: &str, to: &str) -> Self {
        self.change(Change::Rename(from.to_owned(), to.to_owned()))
    }

    fn change(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The system cannot write it.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        std::fs::write(path, self.bytes())
    }

    /// Writes the model as parts `stem-00001-of-00003.gguf` and so on; gives their paths.
    ///
    /// # Errors
    /// The system cannot write them.
    pub fn write_split(&self, folder: &Path, stem: &str, parts: usize) -> io::Result<Vec<PathBuf>> {
        let files = self.gguf().split(parts);
        let write = |(i, file): (usize, Gguf)| {
            let path = folder.join(format!("{stem}-{:05}-of-{parts:05}.gguf", i + 1));
            std::fs::write(&path, file.encode().bytes)?;
            Ok(path)
        };
        files.into_iter().enumerate().map(write).collect()
    }

    /// The file's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.encode().bytes
    }

    /// The file's bytes, and where its parts end.
    pub fn encode(&self) -> Encoded {
        self.gguf().encode()
    }

    /// The file before it is encoded.
    ///
    /// # Panics
    /// If the widths are no whole blocks, or a change names nothing that is there.
    pub fn gguf(&self) -> Gguf {
        let mut file = Gguf {
            version: self.version,
            metadata: self.entries(),
            tensors: self.tensors(),
            ..Gguf::default()
        };
        for change in &self.changes {
            apply(&mut file, change);
        }
        file
    }

    fn entries(&self) -> Vec<(String, Value)> {
        let (family, pre) = match self.family {
            Family::Llama => ("llama", "smollm"),
            Family::Qwen2 => ("qwen2", "qwen2"),
        };
        let arch = self.architecture.as_deref().unwrap_or(family);
        let number = |key: &str, n: usize| (format!("{arch}.{key}"), Value::U32(n as u32));
        let id = |token: &str| Value::U32(self.token_id(token).expect("a control token"));
        let mut entries = vec![
            ("general.architecture".to_owned(), Value::from(arch)),
            ("general.name".to_owned(), Value::from("Tiny test model")),
            number("block_count", self.layers),
            number("context_length", self.context as usize),
            number("embedding_length", self.width),
            number("feed_forward_length", self.ffn),
            number("attention.head_count", self.heads),
            number("attention.head_count_kv", self.kv_heads),
            (format!("{arch}.rope.freq_base"), Value::F32(10_000.0)),
            (
                format!("{arch}.attention.layer_norm_rms_epsilon"),
                Value::F32(1e-5),
            ),
        ];
        if self.family == Family::Llama {
            entries.push(number("rope.dimension_count", self.width / self.heads));
            entries.push(number("vocab_size", self.vocabulary.tokens.len()));
        }
        entries.extend([
            ("tokenizer.ggml.model".to_owned(), Value::from("gpt2")),
            ("tokenizer.ggml.pre".to_owned(), Value::from(pre)),
        ]);
        entries.extend(self.vocabulary.entries());
        entries.extend([
            ("tokenizer.ggml.bos_token_id".to_owned(), id(END_OF_TEXT)),
            ("tokenizer.ggml.eos_token_id".to_owned(), id(TURN_END)),
            (
                "tokenizer.ggml.padding_token_id".to_owned(),
                id(END_OF_TEXT),
            ),
            (
                "tokenizer.ggml.add_bos_token".to_owned(),
                Value::Bool(false),
            ),
            (
                "tokenizer.chat_template".to_owned(),
                Value::from(CHAT_TEMPLATE),
            ),
        ]);
        entries
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (width, ffn) = (self.width, self.ffn);
        let kv_width = width / self.heads * self.kv_heads;
        let n_tokens = self.vocabulary.tokens.len();
        // A tied matrix serves as embedding and as output, so it is in between.
        let embedding_gain = if self.tied {
            3.0
        } else {
            (width as f32).sqrt()
        };
        let mut tensors = vec![self.matrix("token_embd.weight", n_tokens, width, embedding_gain)];
        if !self.tied {
            tensors.push(self.matrix("output.weight", n_tokens, width, 3.0));
        }
        tensors.push(self.vector("output_norm.weight", width, 1.0));
        if self.rope_freqs {
            tensors.push(rope_freqs(width / self.heads / 2));
        }
        for layer in 0..self.layers {
            let name = |part: &str| format!("blk.{layer}.{part}");
            tensors.push(self.vector(&name("attn_norm.weight"), width, 1.0));
            for (part, rows) in [
                ("attn_q", width),
                ("attn_k", kv_width),
                ("attn_v", kv_width),
            ] {
                tensors.push(self.matrix(&name(&format!("{part}.weight")), rows, width, 1.3));
                if self.family == Family::Qwen2 {
                    tensors.push(self.vector(&name(&format!("{part}.bias")), rows, 0.0));
                }
            }
            tensors.push(self.matrix(&name("attn_output.weight"), width, width, 1.0));
            tensors.push(self.vector(&name("ffn_norm.weight"), width, 1.0));
            tensors.push(self.matrix(&name("ffn_gate.weight"), ffn, width, 1.3));
            tensors.push(self.matrix(&name("ffn_up.weight"), ffn, width, 1.3));
            tensors.push(self.matrix(&name("ffn_down.weight"), width, ffn, 1.3));
        }
        tensors
    }

    /// A matrix that keeps the size of what it multiplies, times `gain`.
    fn matrix(&self, name: &str, rows: usize, cols: usize, gain: f32) -> Tensor {
        let said = self
            .quants
            .iter()
            .rev()
            .find(|(part, _)| name.contains(part.as_str()));
        let (_, quant) = said.expect("the first entry fits every name");
        assert!(
            cols.is_multiple_of(quant.block_elems),
            "{name}: {cols} columns in {quant}"
        );
        // The variance of a number from -1 to 1 is a third.
        let scale = gain * (3.0 / cols as f32).sqrt();
        let mut random = Random::named(self.seed, name);
        let values: Vec<f32> = (0..rows * cols)
            .map(|_| random.signed_unit() * scale)
            .collect();
        let mut bytes = vec![0; quant.bytes_for(values.len()).expect("whole blocks")];
        (quant.quantize)(&values, &mut bytes);
        let dims = vec![rows as u64, cols as u64];
        Tensor {
            name: name.to_owned(),
            dims,
            type_id: quant.id,
            bytes,
        }
    }

    /// Numbers around `mean`, in F32.
    fn vector(&self, name: &str, len: usize, mean: f32) -> Tensor {
        let mut random = Random::named(self.seed, name);
        let values: Vec<f32> = (0..len)
            .map(|_| mean + random.signed_unit() * 0.2)
            .collect();
        floats(name, &values)
    }
}

/// Factors from 1 for the fast frequencies to 8 for the slow ones.
fn rope_freqs(len: usize) -> Tensor {
    let factor = |i: usize| 8f32.powf(i as f32 / len.saturating_sub(1).max(1) as f32);
    floats(
        "rope_freqs.weight",
        &(0..len).map(factor).collect::<Vec<f32>>(),
    )
}

fn floats(name: &str, values: &[f32]) -> Tensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let type_id = candor_quant::types::f32::TYPE.id;
    Tensor {
        name: name.to_owned(),
        dims: vec![values.len() as u64],
        type_id,
        bytes,
    }
}

fn apply(file: &mut Gguf, change: &Change) {
    let tensor = |file: &Gguf, name: &str| {
        let found = file.tensors.iter().position(|tensor| tensor.name == name);
        found.unwrap_or_else(|| panic!("no tensor {name} to change"))
    };
    let entry = |file: &Gguf, key: &str| file.metadata.iter().position(|(k, _)| k == key);
    match change {
        Change::Set(key, value) => match entry(file, key) {
            Some(at) => file.metadata[at].1 = value.clone(),
            None => file.metadata.push((key.clone(), value.clone())),
        },
        Change::Unset(key) => {
            let at = entry(file, key).unwrap_or_else(|| panic!("no entry {key} to leave out"));
            file.metadata.remove(at);
        }
        Change::Add(added) => file.tensors.push(added.clone()),
        Change::Drop(name) => {
            let at = tensor(file, name);
            file.tensors.remove(at);
        }
        Change::Rename(from, to) => {
            let at = tensor(file, from);
            file.tensors[at].name = to.clone();
        }
    }
}
