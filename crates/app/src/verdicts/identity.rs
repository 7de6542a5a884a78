//! What makes a model file the same file as before, for things that were found out about it.
//!
//! Reading all of a model takes seconds, so only what describes it is hashed, and samples of its
//! weights. A file that was changed has another time, too.

use std::fs::{self, File};
use std::io::{self, Read};
use std::time::UNIX_EPOCH;

use candor_modelfile::{Index, ModelFile, TensorInfo};
use sha2::{Digest, Sha256};

use super::store::hex;

/// Most bytes of the description that are read. The largest vocabularies take some 20 MB.
const HEADER_BYTES_MAX: u64 = 64 << 20;
/// Samples of the weights, spread evenly over them.
const SAMPLES: u64 = 64;
/// Bytes of a sample: a page, which is what reading one byte costs anyway.
const SAMPLE_BYTES: usize = 4_096;

/// A short text that is the same for the same file.
///
/// # Errors
/// The file cannot be read any more.
pub(crate) fn identity(file: &ModelFile) -> io::Result<String> {
    let metadata = fs::metadata(file.path())?;
    let changed = metadata
        .modified()?
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut hash = Sha256::new();
    header(file, &mut hash)?;
    tensor_table(file.index(), &mut hash);
    samples(file, &mut hash);
    let (bytes, nanos) = (metadata.len(), changed.as_nanos());
    Ok(format!(
        "{bytes}-{nanos}-{}-{}",
        inode(&metadata),
        hex(&hash.finalize())
    ))
}

#[cfg(unix)]
fn inode(metadata: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

/// Where files have no such number the rest has to do.
#[cfg(not(unix))]
fn inode(_metadata: &fs::Metadata) -> u64 {
    0
}

/// The bytes before the first weight: metadata, vocabulary, tensor table.
fn header(file: &ModelFile, hash: &mut Sha256) -> io::Result<()> {
    let first = file
        .index()
        .tensors
        .iter()
        .map(|tensor| tensor.range.start)
        .min();
    let length = HEADER_BYTES_MAX.min(first.unwrap_or(0));
    let mut header = Vec::new();
    File::open(file.path())?
        .take(length)
        .read_to_end(&mut header)?;
    hash.update((header.len() as u64).to_le_bytes());
    hash.update(header);
    Ok(())
}

/// As it was read, from all parts of a split model.
fn tensor_table(index: &Index, hash: &mut Sha256) {
    for tensor in &index.tensors {
        let place = &tensor.range;
        let (name, quant, dims) = (&tensor.name, tensor.quant.name, &tensor.dims);
        let line = format!("{name} {quant} {dims:?} {place:?}\n");
        hash.update(line);
    }
}

/// Pieces of the weights, taken of all of them as if they lay one behind the other.
fn samples(file: &ModelFile, hash: &mut Sha256) {
    let tensors = &file.index().tensors;
    let bytes = |tensor: &TensorInfo| tensor.range.end - tensor.range.start;
    let total: u64 = tensors.iter().map(bytes).sum();
    let mut places = (0..SAMPLES)
        .map(|sample| sample_place(total, sample))
        .peekable();
    let mut before = 0;
    for tensor in tensors {
        let behind = before + bytes(tensor);
        while let Some(place) = places.next_if(|place| *place < behind) {
            // A tensor that is laid out anew may have another length than in the file.
            let bytes = file.bytes(tensor);
            let from = bytes
                .len()
                .min(usize::try_from(place - before).unwrap_or(usize::MAX));
            let to = bytes.len().min(from.saturating_add(SAMPLE_BYTES));
            hash.update(&bytes[from..to]);
        }
        before = behind;
    }
}

fn sample_place(total: u64, sample: u64) -> u64 {
    // In 128 bits, because the product may be longer than a file can be.
    (u128::from(total) * u128::from(sample) / u128::from(SAMPLES)) as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use candor_testkit::TinyModel;

    use super::*;

    fn of(path: &Path) -> String {
        identity(&ModelFile::open(path).unwrap()).unwrap()
    }

    /// Without what the disk says of it.
    fn contents(path: &Path) -> String {
        let all = of(path);
        all.rsplit('-').next().unwrap().to_owned()
    }

    #[test]
    fn the_same_file_is_the_same_and_another_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = ["one.gguf", "two.gguf"].map(|name| dir.path().join(name));
        TinyModel::llama().write(&one).unwrap();
        assert_eq!(of(&one), of(&one));
        fs::copy(&one, &two).unwrap();
        assert_eq!(contents(&one), contents(&two), "the same bytes");
        assert_ne!(of(&one), of(&two), "another place on the disk");

        let bytes = fs::read(&one).unwrap();
        let index = ModelFile::open(&one).unwrap();
        let first = index
            .index()
            .tensors
            .iter()
            .map(|tensor| tensor.range.start)
            .min()
            .unwrap();
        // A word of the vocabulary, and a weight that is sampled.
        let vocabulary = bytes.windows(5).position(|word| word == b"llama").unwrap() as u64;
        for place in [vocabulary, first] {
            let mut changed = bytes.clone();
            changed[place as usize] ^= 0x20;
            fs::write(&two, &changed).unwrap();
            if let Ok(file) = ModelFile::open(&two) {
                let all = identity(&file).unwrap();
                assert!(!all.ends_with(&contents(&one)), "byte {place} counts");
            }
        }
    }

    #[test]
    fn samples_are_spread_over_the_whole() {
        assert_eq!(sample_place(64_000, 0), 0);
        assert_eq!(sample_place(64_000, 63), 63_000);
        assert_eq!(sample_place(u64::MAX, 32), u64::MAX / 2);
        assert_eq!(sample_place(0, 5), 0);
    }
}
