//! The files of the suite that every backend has to pass.

use candor_backend::conformance::TensorBytes;
use candor_modelfile::ModelFile;

use crate::gguf::{Gguf, Tensor, Value};

/// A model file with these tensors, open. The mapping outlives the file's name.
///
/// # Panics
/// If the system has no room for it.
pub fn model_of(tensors: &[TensorBytes]) -> ModelFile {
    let tensor = |tensor: &TensorBytes| Tensor {
        name: tensor.name.clone(),
        dims: tensor.dims.iter().map(|dim| *dim as u64).collect(),
        type_id: tensor.quant.id,
        bytes: tensor.bytes.clone(),
    };
    let gguf = Gguf {
        metadata: vec![("general.architecture".to_owned(), Value::from("llama"))],
        tensors: tensors.iter().map(tensor).collect(),
        ..Gguf::default()
    };
    let folder = tempfile::tempdir().expect("a folder for the file");
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, gguf.encode().bytes).expect("the file is written");
    ModelFile::open(&path).expect("the file is a model")
}
