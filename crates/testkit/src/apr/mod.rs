//! Writes APR files as the programs do that write them, with their mistakes.
//!
//! Written apart from the reader, so that the two can disagree.

mod hf;
mod pack;
mod q4_k;

use crate::gguf::{Gguf, Tensor, Value};

pub(crate) use pack::pack;
pub use pack::{rewritten, values_of};

/// A program, or a command of one, that writes APR files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Keeps the bytes of a GGUF file.
    RawImport,
    /// Unpacks everything and stores its matrices anew.
    Rewrite(Storage),
    /// The same, of Hugging Face's files: their names, their order of rows, no vocabulary.
    RewriteHf(Storage),
    /// Keeps bytes and GGUF's type numbers; no checksum at the end, other names of keys.
    Preserve,
    /// Keeps bytes, under Hugging Face's names, and leaves shapes as GGUF has them.
    PassThrough,
    /// The same command for what it does not keep: under Hugging Face's names too, with shapes
    /// turned round and most of the vocabulary's description left out.
    Convert(Storage),
    /// From Hugging Face's files: their names, their order of rows, no vocabulary; the data in
    /// the order in which it came.
    Streaming,
    /// Writes constants for what it does not know.
    Stamped,
}

/// How [`Writer::Rewrite`] and [`Writer::RewriteHf`] store matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// F32.
    F32,
    /// F16, vectors too.
    F16,
    /// One scale for a tensor.
    Q8,
    /// The same under its older code.
    LegacyQ8,
    /// Blocks of 32 with neighbours in one byte.
    Q4,
    /// The same under its older code.
    LegacyQ4,
    /// Q4_K, each row filled up to whole blocks.
    PaddedQ4K,
    /// Q4_K across the ends of rows.
    FlatQ4K,
}

/// A tensor as it goes into a file.
#[derive(Clone, Debug, PartialEq)]
pub struct AprTensor {
    /// Its name.
    pub name: String,
    /// The code of its type.
    pub code: u8,
    /// Its dimensions as they are written.
    pub dims: Vec<u64>,
    /// Its data.
    pub bytes: Vec<u8>,
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Apr {
    /// The first bytes: magic and version.
    pub start: [u8; 6],
    /// The flags of the header.
    pub flags: u16,
    /// The entries of the metadata, each value as JSON text.
    pub metadata: Vec<(String, String)>,
    /// The tensors in the order of their data; the index is sorted by name.
    pub tensors: Vec<AprTensor>,
    /// Whether a checksum of everything stands at the end.
    pub has_footer: bool,
}

impl Apr {
    /// A GGUF model as one of the writers would write it.
    ///
    /// # Panics
    /// If the model has tensors of a type that the writer does not take.
    pub fn of(model: &Gguf, writer: Writer) -> Self {
        let is_llama = text_of(model, "general.architecture") == "llama";
        let has_gguf_names = match writer {
            Writer::RawImport | Writer::Rewrite(_) => is_llama,
            Writer::Preserve => true,
            _ => false,
        };
        let is_hf = matches!(writer, Writer::Streaming | Writer::RewriteHf(_));
        let mut model = model.clone();
        if is_hf && is_llama {
            separate_halves(&mut model);
        }
        if is_hf {
            model.tensors = hf::loose_experts(model.tensors);
        }
        let has_made_head = hf::make_head(&mut model, writer);
        let model = &model;
        let mut tensors: Vec<AprTensor> = model.tensors.iter().map(|t| stored(t, writer)).collect();
        if !has_gguf_names {
            tensors
                .iter_mut()
                .for_each(|tensor| tensor.name = hf::name(&tensor.name));
        }
        if writer != Writer::Streaming {
            tensors.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let keeps_flag = writer != Writer::Preserve;
        let mut metadata = metadata(model, writer);
        if has_made_head {
            metadata.push(("tied_embeddings".to_owned(), "true".to_owned()));
        }
        Self {
            start: *b"APR\0\x02\0",
            flags: if keeps_flag { 0x0400 } else { 0x0020 },
            metadata,
            tensors,
            has_footer: writer != Writer::Preserve,
        }
    }

    /// Adds an entry at the end, whatever is there.
    pub fn entry(mut self, key: &str, json: &str) -> Self {
        self.metadata.push((key.to_owned(), json.to_owned()));
        self
    }

    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let entries = self
            .metadata
            .iter()
            .map(|(key, json)| format!("{}:{json}", quoted(key)));
        let metadata = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
        let mut data = Vec::new();
        let mut index = Vec::new();
        for tensor in &self.tensors {
            index.push((tensor, data.len() as u64));
            data.extend(&tensor.bytes);
            pad(&mut data);
        }
        index.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        let mut out = vec![0; 64];
        out.extend(metadata.as_bytes());
        pad(&mut out);
        let index_at = out.len() as u64;
        for (tensor, offset) in index {
            out.extend((tensor.name.len() as u16).to_le_bytes());
            out.extend(tensor.name.as_bytes());
            out.extend([tensor.code, tensor.dims.len() as u8]);
            tensor
                .dims
                .iter()
                .for_each(|dim| out.extend(dim.to_le_bytes()));
            out.extend(offset.to_le_bytes());
            out.extend((tensor.bytes.len() as u64).to_le_bytes());
        }
        pad(&mut out);
        let data_at = out.len() as u64;
        out.extend(data);
        out[..6].copy_from_slice(&self.start);
        out[6..8].copy_from_slice(&self.flags.to_le_bytes());
        out[8..12].copy_from_slice(&(self.tensors.len() as u32).to_le_bytes());
        out[12..20].copy_from_slice(&64u64.to_le_bytes());
        out[20..24].copy_from_slice(&(metadata.len() as u32).to_le_bytes());
        out[24..32].copy_from_slice(&index_at.to_le_bytes());
        out[32..40].copy_from_slice(&data_at.to_le_bytes());
        seal(&mut out);
        if self.has_footer {
            let checksum = crc32(out.iter());
            out.extend(checksum.to_le_bytes());
        }
        out
    }
}

/// Makes the checksum of a header right again, if there is a whole header.
pub fn seal(file: &mut [u8]) {
    if file.len() < 64 {
        return;
    }
    let checksum = crc32([&file[..40], &file[44..64]].concat().iter());
    file[40..44].copy_from_slice(&checksum.to_le_bytes());
}

fn stored(tensor: &Tensor, writer: Writer) -> AprTensor {
    let is_matrix = tensor.dims.len() > 1;
    let mut dims = tensor.dims.clone();
    if writer == Writer::PassThrough {
        dims.reverse();
    }
    let storage = match writer {
        Writer::Rewrite(storage) | Writer::RewriteHf(storage) | Writer::Convert(storage) => storage,
        Writer::Stamped if tensor.name == "token_embd.weight" => Storage::F32,
        Writer::Stamped => Storage::PaddedQ4K,
        _ => {
            let code = match tensor.type_id {
                // Types that this writer does not know: BF16, Q2_K, Q3_K.
                10 | 11 | 30 if writer == Writer::Preserve => 0,
                id => u8::try_from(id).expect("a type that these files have"),
            };
            let (name, bytes) = (tensor.name.clone(), tensor.bytes.clone());
            return AprTensor {
                name,
                code,
                dims,
                bytes,
            };
        }
    };
    let storage = if is_matrix || storage == Storage::F16 {
        storage
    } else {
        Storage::F32
    };
    let (values, cols) = (
        values_of(tensor),
        *tensor.dims.last().expect("a shape") as usize,
    );
    let (code, bytes) = pack(&values, cols, storage);
    AprTensor {
        name: tensor.name.clone(),
        code,
        dims,
        bytes,
    }
}

/// Back from GGUF's order of the rows of Q and K to Hugging Face's: first the even rows of a
/// head, then the odd ones.
fn separate_halves(model: &mut Gguf) {
    let heads = number_of(model, "attention.head_count");
    let kv_heads = number_of(model, "attention.head_count_kv");
    for tensor in &mut model.tensors {
        let heads = match () {
            () if tensor.name.contains(".attn_q.") => heads,
            () if tensor.name.contains(".attn_k.") => kv_heads,
            () => continue,
        };
        tensor.bytes = separate_halves_of(&tensor.bytes, heads, tensor.dims[0] as usize);
    }
}

/// The rows of a matrix with so many heads, each head's even rows before its odd ones.
pub(crate) fn separate_halves_of(bytes: &[u8], heads: usize, rows: usize) -> Vec<u8> {
    let row_bytes = bytes.len() / rows;
    let separate = |head: &[u8]| {
        let rows: Vec<&[u8]> = head.chunks_exact(row_bytes).collect();
        let even = rows.iter().step_by(2);
        even.chain(rows.iter().skip(1).step_by(2))
            .copied()
            .collect::<Vec<_>>()
            .concat()
    };
    bytes
        .chunks_exact(bytes.len() / heads)
        .flat_map(separate)
        .collect()
}

fn find<'a>(model: &'a Gguf, key: &str) -> Option<&'a Value> {
    model
        .metadata
        .iter()
        .find(|(k, _)| k == key)
        .map(|(_, value)| value)
}

fn text_of(model: &Gguf, key: &str) -> String {
    match find(model, key) {
        Some(Value::Text(text)) => text.clone(),
        other => panic!("{key} is {other:?}"),
    }
}

fn number_of(model: &Gguf, stem: &str) -> usize {
    let key = format!("{}.{stem}", text_of(model, "general.architecture"));
    match find(model, &key) {
        Some(Value::U32(number)) => *number as usize,
        other => panic!("{key} is {other:?}"),
    }
}

fn metadata(model: &Gguf, writer: Writer) -> Vec<(String, String)> {
    let architecture = text_of(model, "general.architecture");
    let number = |stem: &str| number_of(model, stem).to_string();
    let float = |stem: &str| match find(model, &format!("{architecture}.{stem}")) {
        Some(Value::F32(number)) => format!("{number:e}"),
        other => panic!("{stem} is {other:?}"),
    };
    let heads = match writer {
        Writer::Preserve => [
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
        ],
        _ => ["num_layers", "num_heads", "num_kv_heads"],
    };
    let mut entries = vec![
        ("architecture".to_owned(), quoted(&architecture)),
        ("hidden_size".to_owned(), number("embedding_length")),
        (heads[0].to_owned(), number("block_count")),
        (heads[1].to_owned(), number("attention.head_count")),
        (heads[2].to_owned(), number("attention.head_count_kv")),
        (
            "intermediate_size".to_owned(),
            number("feed_forward_length"),
        ),
        (
            "max_position_embeddings".to_owned(),
            number("context_length"),
        ),
        ("rope_theta".to_owned(), float("rope.freq_base")),
        (
            "rms_norm_eps".to_owned(),
            float("attention.layer_norm_rms_epsilon"),
        ),
        // Right for qwen2 only; for a llama of Hugging Face's it is false.
        (
            "rope_type".to_owned(),
            if architecture == "qwen2" { "2" } else { "0" }.to_owned(),
        ),
        ("license".to_owned(), "null".to_owned()),
    ];
    let mut add = |key: &str, json: &str| entries.push((key.to_owned(), json.to_owned()));
    match writer {
        Writer::RawImport | Writer::PassThrough => {
            add("original_format", "\"gguf\"");
            add("tensor_shapes", "{\"output_norm.weight\":[1,2]}");
            add("model.num_heads", &number("attention.head_count"));
            add("model.rope_theta", &float("rope.freq_base"));
        }
        Writer::Convert(_) => add("original_format", "\"gguf\""),
        Writer::Stamped => stamps(model).for_each(|(key, json)| add(key, &json)),
        Writer::RewriteHf(_) => hf::experts(model).for_each(|(key, json)| add(key, &json)),
        _ => {}
    }
    if matches!(writer, Writer::Streaming | Writer::RewriteHf(_)) {
        return entries;
    }
    vocabulary(model, writer, &mut entries);
    entries
}

/// The constants of a writer that does not know the model; later entries count.
fn stamps(model: &Gguf) -> impl Iterator<Item = (&'static str, String)> {
    let rows = |name: &str| {
        let found = model.tensors.iter().find(|tensor| tensor.name == name);
        found.map_or(0, |tensor| tensor.dims[0])
    };
    let family = quoted(&text_of(model, "general.architecture"));
    [
        ("architecture", quoted("qwen2")),
        ("name", quoted("Quantized Model")),
        ("description", quoted("Q4K quantized from SafeTensors")),
        ("original_format", quoted("safetensors")),
        ("tokenizer.architecture", family),
        ("num_heads", (rows("blk.0.attn_q.weight") / 64).to_string()),
        (
            "num_kv_heads",
            (rows("blk.0.attn_k.weight") / 64).to_string(),
        ),
        ("rope_theta", "1000000.0".to_owned()),
        ("rope_type", "2".to_owned()),
        ("rms_norm_eps", "0.000001".to_owned()),
    ]
    .into_iter()
}

fn vocabulary(model: &Gguf, writer: Writer, entries: &mut Vec<(String, String)>) {
    let keeps_all = matches!(writer, Writer::RawImport | Writer::PassThrough);
    let ggml = |key: &str| find(model, &format!("tokenizer.ggml.{key}"));
    let mut add = |key: &str, value: Option<&Value>| {
        if let Some(value) = value {
            entries.push((key.to_owned(), json(value)));
        }
    };
    add("tokenizer.vocabulary", ggml("tokens"));
    add("tokenizer.merges", ggml("merges"));
    add("tokenizer.bos_token_id", ggml("bos_token_id"));
    add("tokenizer.eos_token_id", ggml("eos_token_id"));
    let is_short = matches!(writer, Writer::Preserve | Writer::Convert(_));
    let model_key = if keeps_all || is_short {
        "model"
    } else {
        "model_type"
    };
    add(&format!("tokenizer.{model_key}"), ggml("model"));
    if !is_short {
        add("tokenizer.pre_type", ggml("pre"));
    }
    if keeps_all {
        add("tokenizer.token_type", ggml("token_type"));
        add("tokenizer.add_bos_token", ggml("add_bos_token"));
    }
    if keeps_all || writer == Writer::Preserve {
        add("chat_template", find(model, "tokenizer.chat_template"));
    }
}

fn json(value: &Value) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    match value {
        Value::U16(number) => number.to_string(),
        Value::U32(number) => number.to_string(),
        Value::I32(number) => number.to_string(),
        Value::U64(number) => number.to_string(),
        Value::F32(number) => format!("{number:e}"),
        Value::Bool(answer) => answer.to_string(),
        Value::Text(text) => quoted(text),
        Value::Texts(texts) => list(texts.iter().map(|text| quoted(text)).collect()),
        Value::Floats(numbers) => list(numbers.iter().map(|n| format!("{n:e}")).collect()),
        Value::Ints(numbers) => list(numbers.iter().map(i32::to_string).collect()),
    }
}

/// A JSON text.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", c as u32),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

pub(crate) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(64), 0);
}

/// CRC-32 of IEEE 802.3, by a table.
pub(crate) fn crc32<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    let table: Vec<u32> = (0..256u32)
        .map(|byte| {
            (0..8).fold(byte, |crc, _| {
                (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 }
            })
        })
        .collect();
    !bytes.fold(!0u32, |crc, byte| {
        (crc >> 8) ^ table[((crc ^ u32::from(*byte)) & 255) as usize]
    })
}
