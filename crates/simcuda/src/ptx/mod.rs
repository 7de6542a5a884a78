//! PTX text to kernels: reading, checking and choosing what each instruction will execute.

mod decode;
mod lex;
mod read;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::exec::code::Code;

use read::Variable;

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
    pub(crate) code: Code,
    pub(crate) source: Arc<str>,
}

/// Threads of a block on every card.
const THREADS_MAX: u32 = 1024;

/// Shared memory that a kernel may declare itself.
const SHARED_BYTES_MAX: u32 = 48 << 10;

/// Local memory of a thread; the ISA allows 512 KiB, ours use a few hundred bytes.
const LOCAL_BYTES_MAX: u32 = 512 << 10;

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
        let read = read::read(text)?;
        check_limits(&read, limits)?;
        let source: Arc<str> = text.into();
        let mut kernels = BTreeMap::new();
        for entry in &read.entries {
            let one = decode::decode(entry, &read.variables)?;
            if one.shared_bytes > SHARED_BYTES_MAX || one.local_bytes > LOCAL_BYTES_MAX {
                return Err(header(PtxFault::Directive, entry.name));
            }
            let kernel = Kernel {
                name: entry.name.to_owned(),
                params: layout(&entry.params),
                shared_bytes: one.shared_bytes,
                local_bytes: one.local_bytes,
                threads_max: entry.threads_max.unwrap_or(THREADS_MAX).min(THREADS_MAX),
                registers: one.registers,
                code: one.code,
                source: source.clone(),
            };
            kernels.insert(kernel.name.clone(), Arc::new(kernel));
        }
        let placed = read.variables.iter().filter(|v| v.space != ".shared");
        Ok(Self {
            version: read.version,
            target: read.target.1,
            kernels,
            globals: placed.map(global).collect(),
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

impl Kernel {
    /// A line of the text it was read from.
    pub(crate) fn line(&self, line: u32) -> &str {
        let index = line.saturating_sub(1) as usize;
        self.source.lines().nth(index).unwrap_or_default().trim()
    }
}

fn check_limits(read: &read::Text<'_>, limits: &Limits) -> Result<(), PtxError> {
    if read.version == (0, 0) || read.target.1 == 0 {
        return Err(header(PtxFault::Syntax, "no version or target"));
    }
    if read.version > limits.version {
        let (major, minor) = read.version;
        return Err(header(PtxFault::Version, &format!("{major}.{minor}")));
    }
    let (name, target) = read.target;
    // Features of one card alone, as `sm_90a`, are not those of its successors.
    let exact = name.ends_with(['a', 'f']);
    if target > limits.capability || (exact && target != limits.capability) {
        return Err(header(PtxFault::Target, name));
    }
    Ok(())
}

fn header(what: PtxFault, text: &str) -> PtxError {
    PtxError {
        line: 1,
        what,
        text: text.to_owned(),
    }
}

/// Where parameters lie: one after the other, each at a multiple of its alignment.
fn layout(params: &[Variable<'_>]) -> Vec<Param> {
    let mut end = 0;
    let place = |param: &Variable<'_>| {
        let offset = usize::next_multiple_of(end, param.align as usize);
        let bytes = param.bytes.unwrap_or(0) as usize;
        end = offset + bytes;
        Param { offset, bytes }
    };
    params.iter().map(place).collect()
}

fn global(variable: &Variable<'_>) -> Global {
    let bytes = variable.bytes.unwrap_or(0);
    let mut init = variable.init.clone();
    init.resize(bytes as usize, 0);
    Global {
        name: variable.name.to_owned(),
        bytes,
        align: variable.align,
        init,
    }
}
