//! Split models: any part opens the whole, and parts that are no whole are refused by name.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot write its files has to stop"
)]

use std::path::{Path, PathBuf};

use candor_modelfile::{ModelFile, gguf::split::PartName};
use candor_testkit::gguf::{Gguf, Value};
use candor_testkit::{TURN_END, TinyModel};

fn model() -> TinyModel {
    TinyModel::qwen2().layers(3)
}

fn write(folder: &Path, model: &TinyModel) -> Vec<PathBuf> {
    model.write_split(folder, "m", 3).unwrap()
}

/// The message of a refusal, with what a person can do.
fn refusal(path: &Path) -> String {
    let error = match ModelFile::open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    };
    format!("{error} ({})", error.advice().unwrap())
}

#[test]
fn any_part_opens_the_whole_with_every_tensor_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let parts = write(folder.path(), &model());
    let whole = model().gguf();
    let sizes: Vec<u64> = parts
        .iter()
        .map(|p| std::fs::metadata(p).unwrap().len())
        .collect();
    for path in &parts {
        let file = ModelFile::open(path).unwrap();
        let index = file.index();
        assert_eq!(file.path(), path);
        assert_eq!(index.file_bytes, sizes.iter().sum::<u64>());
        assert_eq!(index.architecture, "qwen2");
        let n_tokens = index.tokenizer.as_ref().unwrap().tokens.len();
        assert_eq!(Some(n_tokens as u32 - 1), model().token_id(TURN_END));
        assert!(index.chat_template.is_some());
        assert_eq!(index.tensors.len(), whole.tensors.len());
        for (found, want) in index.tensors.iter().zip(&whole.tensors) {
            assert_eq!(found.name, want.name);
            assert_eq!(file.bytes(found), want.bytes, "{}", want.name);
            file.release(found);
            assert_eq!(file.bytes(found), want.bytes, "{} again", want.name);
        }
        file.check_length().unwrap();
    }
    // A part that loses bytes while it is open is found, whichever it is.
    let file = ModelFile::open(&parts[0]).unwrap();
    let last = std::fs::OpenOptions::new()
        .write(true)
        .open(&parts[2])
        .unwrap();
    last.set_len(sizes[2] - 1).unwrap();
    let message = file.check_length().unwrap_err().to_string();
    assert!(message.starts_with("m-00003-of-00003.gguf: "), "{message}");
}

#[test]
fn missing_and_damaged_parts_are_named() {
    for missing in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let parts = write(folder.path(), &model());
        std::fs::remove_file(&parts[missing]).unwrap();
        let message = refusal(&parts[(missing + 1) % 3]);
        let start = format!(
            "m-0000{n}-of-00003.gguf: this part ({n} of 3)",
            n = missing + 1
        );
        assert!(message.starts_with(&start), "{message}");
        assert!(message.contains("missing"), "{message}");
        assert!(!message.contains("incomplete"), "{message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let parts = write(folder.path(), &model());
    let bytes = std::fs::read(&parts[1]).unwrap();
    std::fs::write(&parts[1], &bytes[..bytes.len() / 2]).unwrap();
    let message = refusal(&parts[0]);
    assert!(
        message.starts_with("m-00002-of-00003.gguf: the file is incomplete"),
        "{message}"
    );
}

#[test]
fn parts_of_different_models_are_refused() {
    /// Changes the second part.
    type Change = fn(&mut Gguf);
    fn set(part: &mut Gguf, key: &str, value: Value) {
        let entry = part.metadata.iter_mut().find(|(k, _)| k == key);
        entry.unwrap().1 = value;
    }
    let cases: [(Change, &str); 9] = [
        (|p| p.metadata.clear(), "it is a whole model"),
        (|p| set(p, "split.no", Value::U16(2)), "part 3 of 3"),
        (
            |p| set(p, "split.no", Value::U64(u64::MAX)),
            "part 18446744073709551615 of 3",
        ),
        (|p| set(p, "split.count", Value::U16(4)), "part 2 of 4"),
        (
            |p| set(p, "split.tensors.count", Value::I32(7)),
            "counts other tensors",
        ),
        (
            |p| {
                p.metadata
                    .push(("general.architecture".into(), "llama".into()))
            },
            "its entry `general.architecture` is another one",
        ),
        (
            |p| p.metadata.push(("qwen2.block_count".into(), Value::U32(9))),
            "its entry `qwen2.block_count` is another one",
        ),
        (|p| drop(p.tensors.pop()), "tensors together, not"),
        (
            |p| p.tensors[0].name = "token_embd.weight".into(),
            "it repeats the tensor `token_embd.weight`",
        ),
    ];
    for (change, words) in cases {
        let folder = tempfile::tempdir().unwrap();
        let paths = write(folder.path(), &model());
        let mut second = model().gguf().split(3).swap_remove(1);
        change(&mut second);
        std::fs::write(&paths[1], second.encode().bytes).unwrap();
        let message = refusal(&paths[0]);
        assert!(message.contains("do not belong together"), "{message}");
        assert!(message.contains(words), "{message}");
        assert!(!message.contains("incomplete"), "{message}");
    }
    // A part of a larger model under the right name.
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), &model());
    let other = TinyModel::qwen2().layers(4).gguf().split(3).swap_remove(1);
    std::fs::write(&paths[1], other.encode().bytes).unwrap();
    assert!(refusal(&paths[2]).contains("do not belong together"));
}

#[test]
fn renamed_parts_and_pieces_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let paths = write(folder.path(), &model());
    for name in ["renamed.gguf", "m-00001-of-00004.gguf"] {
        let renamed = folder.path().join(name);
        std::fs::copy(&paths[0], &renamed).unwrap();
        let message = refusal(&renamed);
        assert!(
            message.contains("does not end in `-00001-of-00003.gguf`"),
            "{message}"
        );
    }
    // Cut at any byte: the first piece looks like a model, the second like nothing.
    let whole = model().bytes();
    let (first, second) = whole.split_at(whole.len() / 2);
    for (part, bytes) in [(1, first), (2, second)] {
        let path = folder.path().join(format!("w.gguf.part{part}of2"));
        std::fs::write(&path, bytes).unwrap();
        let message = refusal(&path);
        let command = "`cat w.gguf.part1of2 w.gguf.part2of2 > w.gguf`";
        assert!(
            message.contains(command) && message.contains("join"),
            "{message}"
        );
        assert!(!message.contains("incomplete"), "{message}");
    }
}

#[test]
fn part_names_are_taken_apart() {
    let check = |name: &str, found: Option<(&str, u64, u64)>| {
        let name = PartName::of(name);
        assert_eq!(name.map(|n| (n.stem, n.part, n.parts)), found);
    };
    check("m-00002-of-00003.gguf", Some(("m", 2, 3)));
    check("a-b 00-00001-of-00001.gguf", Some(("a-b 00", 1, 1)));
    check("m-00004-of-00003.gguf", None);
    check("m-00000-of-00003.gguf", None);
    check("m-1-of-3.gguf", None);
    check("m-0000x-of-00003.gguf", None);
    check("m-+0001-of-00003.gguf", None);
    check("m.gguf", None);
    let name = PartName::of("m-00002-of-00003.gguf").unwrap();
    assert_eq!(name.file_name(3), "m-00003-of-00003.gguf");
}
