//! What the tensors of APR files are: the code and the size together, experts one by one, and
//! everything that has to be laid out anew.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read its files has to stop"
)]

use candor_modelfile::{Index, LayOutError, ModelFile, ParseError, apr};
use candor_testkit::TinyModel;
use candor_testkit::apr::{Apr, AprTensor, Storage, Writer};
use candor_testkit::golden;

fn parse(file: &Apr) -> Result<Index, ParseError> {
    let bytes = file.encode();
    apr::parse(&bytes, bytes.len() as u64)
}

/// Opens a written file.
fn written(file: &Apr) -> (tempfile::TempDir, ModelFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written.apr");
    std::fs::write(&path, file.encode()).unwrap();
    (folder, ModelFile::open(&path).unwrap())
}

/// What a tensor of 4 rows of `cols` values is read as, by its code and its bytes.
fn read_as(code: u8, cols: usize, size: usize) -> Result<String, String> {
    let mut file = Apr::of(&TinyModel::llama().layers(1).gguf(), Writer::RawImport);
    file.tensors.push(AprTensor {
        name: "odd.weight".to_owned(),
        code,
        dims: vec![4, cols as u64],
        bytes: vec![0; size],
    });
    let index = parse(&file).map_err(|error| error.to_string())?;
    let found = index.tensor("odd.weight").unwrap();
    Ok(found.quant.name.to_owned())
}

#[test]
fn code_and_size_tell_together_what_a_tensor_is() {
    let refused = "fits no storage type";
    let cases = [
        // Codes of these files' own.
        (0, 32, 512, Ok("F32")),
        (1, 32, 256, Ok("F16")),
        (30, 32, 256, Ok("BF16")),
        (0, 32, 256, Ok("BF16")),
        (12, 256, 576, Ok("Q4_K")),
        (14, 256, 840, Ok("Q6_K")),
        (128, 32, 72, Ok("Q4_0")),
        (129, 32, 132, Ok("F32")),
        // GGUF's numbers, which the file's own codes collide with.
        (2, 32, 72, Ok("Q4_0")),
        (3, 32, 80, Ok("Q4_1")),
        (3, 32, 1_024, Err(refused)),
        (6, 32, 88, Ok("Q5_0")),
        (6, 32, 128, Err(refused)),
        (7, 32, 96, Ok("Q5_1")),
        (7, 32, 128, Err(refused)),
        (8, 32, 72, Ok("Q4_0")),
        (8, 32, 136, Ok("Q8_0")),
        (9, 32, 132, Ok("F32")),
        (13, 256, 704, Ok("Q5_K")),
        // Rows filled up, and blocks across rows.
        (12, 96, 576, Ok("F32")),
        (12, 96, 288, Ok("F32")),
        (128, 40, 90, Ok("F32")),
        // K blocks under the code of F32, whole numbers, and what nobody knows.
        (0, 256, 336, Err(refused)),
        (4, 32, 512, Err(refused)),
        (5, 32, 1_024, Err(refused)),
        (77, 32, 512, Err(refused)),
        (12, 96, 577, Err(refused)),
    ];
    for (code, cols, size, want) in cases {
        let found = read_as(code, cols, size);
        match (&found, want) {
            (Ok(found), Ok(want)) => assert_eq!(found, want, "{code} {cols} {size}"),
            (Err(message), Err(words)) => assert!(message.contains(words), "{message}"),
            _ => panic!("{code} {cols} {size}: {found:?}, not {want:?}"),
        }
    }
}

#[test]
fn a_vector_is_as_long_as_it_says_however_it_is_stored() {
    // Fewer values than a block has, more than its bytes, and a matrix of one row.
    let cases: [(u8, &[u64], usize); 4] = [
        (12, &[96], 144),
        (12, &[1_000], 576),
        (12, &[1, 1_000], 576),
        (129, &[96], 100),
    ];
    for (code, dims, size) in cases {
        let mut file = Apr::of(&TinyModel::llama().layers(1).gguf(), Writer::RawImport);
        file.tensors.push(AprTensor {
            name: "odd.weight".to_owned(),
            code,
            dims: dims.to_vec(),
            bytes: vec![0; size],
        });
        let (_folder, file) = written(&file);
        let tensor = file.index().tensor("odd.weight").unwrap();
        let elems: u64 = dims.iter().product();
        assert_eq!(
            file.bytes(tensor).len() as u64,
            4 * elems,
            "{code} {dims:?}"
        );
    }
}

#[test]
fn every_type_under_its_own_number_keeps_its_bytes() {
    for (_, name) in apr::TYPES {
        let model = TinyModel::qwen2()
            .quant(name)
            .width(256, 512)
            .layers(1)
            .gguf();
        let (_folder, file) = written(&Apr::of(&model, Writer::Preserve));
        for tensor in &model.tensors {
            let found = file.index().tensor(&tensor.name).unwrap();
            assert_eq!(found.quant.id, tensor.type_id, "{name} {}", tensor.name);
            assert_eq!(file.bytes(found), tensor.bytes, "{name} {}", tensor.name);
        }
        assert_eq!(file.index().unpacked_bytes, 0, "{name}");
    }
    // Under the code of F32, of which nothing is known but that it is wrong.
    for name in ["Q2_K", "Q3_K"] {
        let model = TinyModel::qwen2().quant(name).width(256, 512).layers(1);
        let message = parse(&Apr::of(&model.gguf(), Writer::Preserve));
        let message = message.unwrap_err().to_string();
        assert!(
            message.contains("fits no storage type with the code 0"),
            "{message}"
        );
    }
}

/// A file of experts in tensors of their own, which says how many a token uses.
fn loose() -> Apr {
    let model = golden::gguf("s14-qwen3moe-q4_k_m");
    Apr::of(&model, Writer::Streaming).entry("num_experts_per_tok", "2")
}

#[test]
fn experts_in_tensors_of_their_own_become_stacks() {
    let model = golden::gguf("s14-qwen3moe-q4_k_m");
    let (_folder, file) = written(&loose());
    let index = file.index();
    assert_eq!(index.tensors.len(), model.tensors.len());
    let mut stacked = 0;
    for tensor in &model.tensors {
        let found = index.tensor(&tensor.name).unwrap();
        let dims: Vec<u64> = found.dims.iter().map(|dim| *dim as u64).collect();
        assert_eq!((&dims, found.quant.id), (&tensor.dims, tensor.type_id));
        assert_eq!(file.bytes(found), tensor.bytes, "{}", tensor.name);
        stacked += if dims.len() == 3 {
            tensor.bytes.len() as u64
        } else {
            0
        };
    }
    // They take memory beside the file, and are said to.
    assert_eq!(index.unpacked_bytes, stacked);
    assert!(
        index
            .notes
            .iter()
            .any(|note| note.to_string().contains("laid out anew"))
    );
    // A family that is known by its Q norms alone.
    let named = |name: &str| {
        parse(&loose().entry("architecture", name))
            .unwrap()
            .architecture
    };
    for name in ["\"qwen3\"", "\"qwen3_moe\"", "\"qwen3moe\""] {
        assert_eq!(named(name), "qwen3moe", "{name}");
    }
}

#[test]
fn experts_that_are_missing_or_unlike_the_others_are_refused() {
    /// Changes the file.
    type Change = fn(&mut Apr);
    fn of<'a>(file: &'a mut Apr, part: &str) -> &'a mut AprTensor {
        let name = format!("model.layers.0.mlp.experts.{part}.weight");
        file.tensors
            .iter_mut()
            .find(|tensor| tensor.name == name)
            .unwrap()
    }
    let stack = "the experts of `blk.0.ffn_up_exps.weight` are not all there";
    let cases: [(Change, &str); 6] = [
        (
            |file| file.tensors.retain(|t| !t.name.contains(".experts.3.up_")),
            stack,
        ),
        (
            |file| file.tensors.retain(|t| !t.name.contains(".experts.0.up_")),
            stack,
        ),
        (
            |file| {
                of(file, "3.up_proj").name = "model.layers.0.mlp.experts.99.up_proj.weight".into()
            },
            stack,
        ),
        (|file| of(file, "3.up_proj").dims = vec![65_536], stack),
        (|file| of(file, "3.up_proj").bytes.truncate(144), stack),
        (
            |file| {
                file.metadata
                    .retain(|(key, _)| key != "num_experts_per_tok")
            },
            "does not state its num_experts_per_tok",
        ),
    ];
    for (change, words) in cases {
        let mut file = loose();
        change(&mut file);
        let message = parse(&file).unwrap_err().to_string();
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn laying_out_goes_in_pieces_and_can_be_stopped_at_each() {
    // More than one piece for the embeddings alone.
    let model = TinyModel::llama()
        .quant("F32")
        .width(256, 512)
        .layers(1)
        .vocabulary(9_000);
    let (_folder, file) = written(&Apr::of(&model.gguf(), Writer::RewriteHf(Storage::Q8)));
    let total = file.index().unpacked_bytes;
    let mut pieces = Vec::new();
    let stopped = file.lay_out(&mut |ready| {
        pieces.push(ready);
        pieces.len() < 3
    });
    assert_eq!(stopped, Err(LayOutError::Stopped));
    assert_eq!(pieces.len(), 3);
    let mut last = 0;
    file.lay_out(&mut |ready| {
        assert!(ready > last && ready <= total);
        last = ready;
        true
    })
    .unwrap();
    // What was ready before the stop is kept, so less is left.
    assert!(last > 0 && last <= total);
    file.lay_out(&mut |_| panic!("everything is ready"))
        .unwrap();
    // The same as when each is laid out on its first use.
    let (_folder, other) = written(&Apr::of(&model.gguf(), Writer::RewriteHf(Storage::Q8)));
    for tensor in &file.index().tensors {
        assert_eq!(file.bytes(tensor), other.bytes(tensor), "{}", tensor.name);
    }
}
