//! Writes GGUF files, valid ones and such as a test wants them wrong.
//!
//! Written apart from the reader, so that the two can disagree.

/// A metadata value, in the widths that tests need.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An unsigned 16-bit number.
    U16(u16),
    /// An unsigned 32-bit number.
    U32(u32),
    /// A signed 32-bit number.
    I32(i32),
    /// An unsigned 64-bit number.
    U64(u64),
    /// A single-precision number.
    F32(f32),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// A list of single-precision numbers.
    Floats(Vec<f32>),
    /// A list of signed 32-bit numbers.
    Ints(Vec<i32>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A tensor as it goes into a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its dimensions, outermost first.
    pub dims: Vec<u64>,
    /// The number of its storage type.
    pub type_id: u32,
    /// Its data.
    pub bytes: Vec<u8>,
}

/// A tensor in the table of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its dimensions, outermost first.
    pub dims: &'a [u64],
    /// The number of its storage type.
    pub type_id: u32,
    /// Bytes of its data.
    pub len: u64,
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Gguf {
    /// The version that the header states; 2 and 3 are laid out the same.
    pub version: u32,
    /// The alignment of the data. Another one than 32 needs its metadata entry too.
    pub alignment: usize,
    /// The entries, in order.
    pub metadata: Vec<(String, Value)>,
    /// The tensors, in order.
    pub tensors: Vec<Tensor>,
}

/// A file's bytes, and where its parts end.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// Where the metadata ends and the tensor table begins.
    pub metadata_end: usize,
    /// Where the tensor table ends.
    pub table_end: usize,
    /// Where the data begins.
    pub data_start: usize,
}

impl Default for Gguf {
    fn default() -> Self {
        Self {
            version: 3,
            alignment: 32,
            metadata: Vec::new(),
            tensors: Vec::new(),
        }
    }
}

impl Gguf {
    /// The model in several files, as `gguf-split` makes them: the first has the metadata, each
    /// has some of the tensors.
    pub fn split(&self, parts: usize) -> Vec<Self> {
        let per_part = self.tensors.len().div_ceil(parts);
        let part = |no: usize| {
            let mut metadata = if no == 0 {
                self.metadata.clone()
            } else {
                Vec::new()
            };
            metadata.push(("split.no".into(), Value::U16(no as u16)));
            metadata.push(("split.count".into(), Value::U16(parts as u16)));
            let n_tensors = self.tensors.len() as i32;
            metadata.push(("split.tensors.count".into(), Value::I32(n_tensors)));
            let tensors = self.tensors.iter().skip(no * per_part).take(per_part);
            Self {
                metadata,
                tensors: tensors.cloned().collect(),
                ..self.clone()
            }
        };
        (0..parts).map(part).collect()
    }

    /// The file's bytes.
    pub fn encode(&self) -> Encoded {
        let entries = self.tensors.iter().map(|tensor| Entry {
            name: &tensor.name,
            dims: &tensor.dims,
            type_id: tensor.type_id,
            len: tensor.bytes.len() as u64,
        });
        let entries: Vec<Entry<'_>> = entries.collect();
        let mut encoded = self.head(&entries);
        let out = &mut encoded.bytes;
        for tensor in &self.tensors {
            out.extend(&tensor.bytes);
            pad(out, self.alignment);
        }
        encoded
    }

    /// All that stands before the data of these tensors; the file's own are not looked at. The
    /// data of each follows, padded to the alignment.
    pub fn head(&self, tensors: &[Entry<'_>]) -> Encoded {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            put_text(&mut out, key);
            put_value(&mut out, value);
        }
        let metadata_end = out.len();
        let mut offset = 0_u64;
        for tensor in tensors {
            put_text(&mut out, tensor.name);
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            for dim in tensor.dims.iter().rev() {
                out.extend(dim.to_le_bytes());
            }
            out.extend(tensor.type_id.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset = (offset + tensor.len).next_multiple_of(self.alignment as u64);
        }
        let table_end = out.len();
        pad(&mut out, self.alignment);
        let data_start = out.len();
        Encoded {
            bytes: out,
            metadata_end,
            table_end,
            data_start,
        }
    }
}

fn pad(out: &mut Vec<u8>, alignment: usize) {
    out.resize(out.len().next_multiple_of(alignment), 0);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Type number, then value. The numbers are GGUF's.
fn put_value(out: &mut Vec<u8>, value: &Value) {
    const TEXT: u32 = 8;
    const LIST: u32 = 9;
    let list = |out: &mut Vec<u8>, element: u32, len: usize| {
        out.extend(LIST.to_le_bytes());
        out.extend(element.to_le_bytes());
        out.extend((len as u64).to_le_bytes());
    };
    let plain = |out: &mut Vec<u8>, id: u32, bytes: &[u8]| {
        out.extend(id.to_le_bytes());
        out.extend(bytes);
    };
    match value {
        Value::U16(n) => plain(out, 2, &n.to_le_bytes()),
        Value::U32(n) => plain(out, 4, &n.to_le_bytes()),
        Value::I32(n) => plain(out, 5, &n.to_le_bytes()),
        Value::F32(n) => plain(out, 6, &n.to_le_bytes()),
        Value::Bool(b) => plain(out, 7, &[u8::from(*b)]),
        Value::U64(n) => plain(out, 10, &n.to_le_bytes()),
        Value::Text(text) => {
            out.extend(TEXT.to_le_bytes());
            put_text(out, text);
        }
        Value::Texts(texts) => {
            list(out, TEXT, texts.len());
            texts.iter().for_each(|text| put_text(out, text));
        }
        Value::Floats(numbers) => {
            list(out, 6, numbers.len());
            numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
        }
        Value::Ints(numbers) => {
            list(out, 5, numbers.len());
            numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
        }
    }
}
