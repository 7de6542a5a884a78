//! Models of real shapes with random weights, for measurements: what they say means nothing, what
//! they cost is what the real model costs. Written piece by piece, so that a file of any size needs
//! little memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use candor_quant::QuantType;

use crate::gguf::{Entry, Gguf, Value};
use crate::model::CHAT_TEMPLATE;
use crate::random::Random;
use crate::vocabulary::{END_OF_TEXT, TURN_END, Vocabulary};

/// Elements that are made once for each type and length of row and then used again from other
/// places: enough that neighbouring rows differ, few enough to be made in a moment.
const TILE_ELEMS: usize = 1 << 20;

/// A shape that people run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeModel {
    /// As a command names it.
    pub name: &'static str,
    architecture: &'static str,
    layers: usize,
    width: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    /// Of a dense model, or of one expert.
    ffn: usize,
    /// Experts and how many of them a token uses; none in a dense model.
    experts: Option<(usize, usize)>,
    vocabulary: usize,
    rope_base: u32,
    /// With norms of every query and key head.
    head_norms: bool,
}

/// The shapes: those of Llama 3.1 8B and of Qwen3-30B-A3B as their model cards give them, a small one
/// with experts that fits any machine, and the first two again as small as the kernels take them,
/// for cards that are simulated.
pub const LARGE_MODELS: &[LargeModel] = &[
    LargeModel {
        name: "llama-8b",
        architecture: "llama",
        layers: 32,
        width: 4096,
        heads: 32,
        kv_heads: 8,
        head_dim: 128,
        ffn: 14_336,
        experts: None,
        vocabulary: 128_256,
        rope_base: 500_000,
        head_norms: false,
    },
    LargeModel {
        name: "qwen3moe-30b-a3b",
        architecture: "qwen3moe",
        layers: 48,
        width: 2048,
        heads: 32,
        kv_heads: 4,
        head_dim: 128,
        ffn: 768,
        experts: Some((128, 8)),
        vocabulary: 151_936,
        rope_base: 10_000_000,
        head_norms: true,
    },
    LargeModel {
        name: "qwen3moe-1g",
        architecture: "qwen3moe",
        layers: 12,
        width: 1024,
        heads: 16,
        kv_heads: 4,
        head_dim: 64,
        ffn: 512,
        experts: Some((64, 8)),
        vocabulary: 65_536,
        rope_base: 1_000_000,
        head_norms: true,
    },
    LargeModel {
        name: "llama-tiny",
        architecture: "llama",
        layers: 2,
        width: 256,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        ffn: 512,
        experts: None,
        vocabulary: 1024,
        rope_base: 500_000,
        head_norms: false,
    },
    LargeModel {
        name: "qwen3moe-tiny",
        architecture: "qwen3moe",
        layers: 2,
        width: 256,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        ffn: 256,
        experts: Some((8, 2)),
        vocabulary: 1024,
        rope_base: 10_000_000,
        head_norms: true,
    },
];

/// A tensor that is to be written.
struct Planned {
    name: String,
    dims: Vec<u64>,
    quant: &'static QuantType,
    fill: Fill,
}

/// What stands in it.
#[derive(Clone, Copy, PartialEq)]
enum Fill {
    /// Numbers that keep the size of what rows of this length are multiplied with, times a gain.
    Matrix { cols: usize, gain: f32 },
    /// Ones.
    Norm,
}

impl LargeModel {
    /// The shape of that name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        LARGE_MODELS.iter().find(|model| model.name == name)
    }

    /// Writes the model in the mix of types that files named Q4_K_M have.
    ///
    /// # Errors
    /// The system cannot write it.
    pub fn write(&self, path: &Path, seed: u64) -> io::Result<()> {
        let tensors = self.tensors();
        let entries = tensors.iter().map(|tensor| Entry {
            name: &tensor.name,
            dims: &tensor.dims,
            type_id: tensor.quant.id,
            len: bytes_of(tensor) as u64,
        });
        let entries: Vec<Entry<'_>> = entries.collect();
        let file = Gguf {
            metadata: self.metadata(),
            ..Gguf::default()
        };
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(&file.head(&entries).bytes)?;
        let mut tiles: Vec<Tile> = Vec::new();
        for tensor in &tensors {
            let at = tiles.iter().position(|tile| tile.fits(tensor));
            let at = at.unwrap_or_else(|| {
                tiles.push(Tile::new(tensor, seed));
                tiles.len() - 1
            });
            let len = bytes_of(tensor);
            tiles[at].pour(&mut out, &mut Random::named(seed, &tensor.name), len)?;
            out.write_all(&vec![0; len.next_multiple_of(file.alignment) - len])?;
        }
        out.flush()
    }

    /// Bytes of all tensors together.
    pub fn data_bytes(&self) -> u64 {
        let tensors = self.tensors();
        tensors.iter().map(|tensor| bytes_of(tensor) as u64).sum()
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let arch = self.architecture;
        let vocabulary = Vocabulary::new(self.vocabulary);
        let number = |key: &str, n: usize| (format!("{arch}.{key}"), Value::U32(n as u32));
        let id = |token| Value::U32(vocabulary.id(token).expect("a control token"));
        let named = |key: &str, value| (format!("tokenizer.{key}"), value);
        let mut entries = vec![
            ("general.architecture".to_owned(), Value::from(arch)),
            ("general.name".to_owned(), Value::from(self.name)),
            number("block_count", self.layers),
            number("context_length", 32_768),
            number("embedding_length", self.width),
            number("feed_forward_length", self.ffn),
            number("attention.head_count", self.heads),
            number("attention.head_count_kv", self.kv_heads),
            number("attention.key_length", self.head_dim),
            number("attention.value_length", self.head_dim),
            number("rope.dimension_count", self.head_dim),
            number("vocab_size", self.vocabulary),
            (
                format!("{arch}.rope.freq_base"),
                Value::F32(self.rope_base as f32),
            ),
            (
                format!("{arch}.attention.layer_norm_rms_epsilon"),
                Value::F32(1e-6),
            ),
        ];
        if let Some((experts, used)) = self.experts {
            entries.extend([
                number("expert_count", experts),
                number("expert_used_count", used),
                number("expert_feed_forward_length", self.ffn),
            ]);
        }
        entries.extend([
            named("ggml.model", Value::from("gpt2")),
            named("ggml.pre", Value::from("qwen2")),
        ]);
        entries.extend(vocabulary.entries());
        entries.extend([
            named("ggml.bos_token_id", id(END_OF_TEXT)),
            named("ggml.eos_token_id", id(TURN_END)),
            named("ggml.add_bos_token", Value::Bool(false)),
            named("chat_template", Value::from(CHAT_TEMPLATE)),
        ]);
        entries
    }

    fn tensors(&self) -> Vec<Planned> {
        let q4_k = &candor_quant::types::q4_k::TYPE;
        let q6_k = &candor_quant::types::q6_k::TYPE;
        let (width, vocabulary) = (self.width, self.vocabulary);
        let gain = (width as f32).sqrt();
        let mut all = vec![
            matrix("token_embd.weight", q4_k, &[vocabulary, width], gain),
            norm("output_norm.weight", width),
            matrix("output.weight", q6_k, &[vocabulary, width], 3.0),
        ];
        for layer in 0..self.layers {
            // Those in which the types named Q4_K_M keep more bits.
            let eighth = self.layers / 8;
            let more = layer < eighth || layer >= 7 * self.layers / 8 || (layer - eighth) % 3 == 2;
            self.add_layer(&mut all, layer, if more { q6_k } else { q4_k });
        }
        all
    }

    fn add_layer(&self, all: &mut Vec<Planned>, layer: usize, finer: &'static QuantType) {
        let coarse = &candor_quant::types::q4_k::TYPE;
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        let mut put = |part: &str, quant, dims: &[usize]| {
            all.push(matrix(&name(part), quant, dims, 1.0));
        };
        let (width, ffn) = (self.width, self.ffn);
        let (q, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        put("attn_q", coarse, &[q, width]);
        put("attn_k", coarse, &[kv, width]);
        put("attn_v", finer, &[kv, width]);
        put("attn_output", coarse, &[width, q]);
        if let Some((experts, _)) = self.experts {
            put(
                "ffn_gate_inp",
                &candor_quant::types::f32::TYPE,
                &[experts, width],
            );
            put("ffn_gate_exps", coarse, &[experts, ffn, width]);
            put("ffn_up_exps", coarse, &[experts, ffn, width]);
            put("ffn_down_exps", finer, &[experts, width, ffn]);
        } else {
            put("ffn_gate", coarse, &[ffn, width]);
            put("ffn_up", coarse, &[ffn, width]);
            put("ffn_down", finer, &[width, ffn]);
        }
        all.push(norm(&name("attn_norm"), width));
        all.push(norm(&name("ffn_norm"), width));
        if self.head_norms {
            all.push(norm(&name("attn_q_norm"), self.head_dim));
            all.push(norm(&name("attn_k_norm"), self.head_dim));
        }
    }
}

fn matrix(name: &str, quant: &'static QuantType, dims: &[usize], gain: f32) -> Planned {
    let cols = dims.last().copied().unwrap_or(1);
    Planned {
        name: name.to_owned(),
        dims: dims.iter().map(|n| *n as u64).collect(),
        quant,
        fill: Fill::Matrix { cols, gain },
    }
}

fn norm(name: &str, len: usize) -> Planned {
    Planned {
        name: name.to_owned(),
        dims: vec![len as u64],
        quant: &candor_quant::types::f32::TYPE,
        fill: Fill::Norm,
    }
}

fn bytes_of(tensor: &Planned) -> usize {
    let elems = tensor.dims.iter().product::<u64>() as usize;
    tensor.quant.bytes_for(elems).expect("whole blocks")
}

/// Random weights of one kind, ready to be written again and again.
struct Tile {
    quant: &'static QuantType,
    fill: Fill,
    bytes: Vec<u8>,
}

impl Tile {
    fn new(tensor: &Planned, seed: u64) -> Self {
        let (quant, fill) = (tensor.quant, tensor.fill);
        let mut random = Random::named(seed, quant.name);
        let values: Vec<f32> = match fill {
            Fill::Norm => vec![1.0; TILE_ELEMS],
            Fill::Matrix { cols, gain } => {
                // The variance of a number from -1 to 1 is a third.
                let scale = gain * (3.0 / cols as f32).sqrt();
                let values = (0..TILE_ELEMS).map(|_| random.signed_unit() * scale);
                values.collect()
            }
        };
        let mut bytes = vec![0; quant.bytes_for(TILE_ELEMS).expect("whole blocks")];
        (quant.quantize)(&values, &mut bytes);
        Self { quant, fill, bytes }
    }

    fn fits(&self, tensor: &Planned) -> bool {
        self.quant.id == tensor.quant.id && self.fill == tensor.fill
    }

    /// Writes so many bytes, from a block of the tile on that this tensor alone begins with.
    fn pour(&self, out: &mut impl Write, random: &mut Random, len: usize) -> io::Result<()> {
        let block = self.quant.bytes_for(self.quant.block_elems).unwrap_or(1);
        let mut left = len;
        while left > 0 {
            let start = random.below(self.bytes.len() / block) * block;
            let piece = &self.bytes[start..];
            let piece = &piece[..piece.len().min(left)];
            out.write_all(piece)?;
            left -= piece.len();
        }
        Ok(())
    }
}
