//! Instructions as they are executed: functions and register numbers, chosen when the text is read.

use super::lanes::{Alu, Compare, Convert, D, Join, W};

/// A register's number in its file. Words, doubles and predicates have a file each; numbers and
/// special registers of the text are registers too, written before a warp starts.
pub(crate) type Reg = u32;

/// A kernel's instructions with what they need.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) list: Vec<Instruction>,
    /// How many registers of each file.
    pub(crate) words: u32,
    pub(crate) doubles: u32,
    pub(crate) predicates: u32,
    /// What stands in registers before a warp starts.
    pub(crate) presets: Vec<Preset>,
}

/// One instruction.
#[derive(Debug)]
pub(crate) struct Instruction {
    pub(crate) op: Op,
    pub(crate) guard: Option<Guard>,
    pub(crate) line: u32,
}

/// A predicate, or its opposite.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    pub(crate) reg: Reg,
    /// All ones to take the opposite.
    pub(crate) flip: u32,
}

/// What a register holds from the start.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Preset {
    Word(Reg, u32),
    Double(Reg, u64),
    Special(Reg, Special),
    /// The address of a global of the module, plus bytes.
    Global(Reg, usize, u64),
    /// Where the shared memory of the launch begins, behind that of the kernel, plus bytes.
    DynamicWord(Reg, u32),
    DynamicDouble(Reg, u64),
}

/// What a thread knows of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(usize),
    Threads(usize),
    Block(usize),
    Blocks(usize),
    Lane,
    Warp,
    Warps,
    LaneMask(LaneMask),
}

/// Lanes relative to one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneMask {
    Equal,
    Below,
    UpTo,
    Above,
    From,
}

/// Where a value goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum To {
    Word(Reg),
    Double(Reg),
    Nowhere,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum From {
    Word(Reg),
    Double(Reg),
}

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// By the address.
    Generic,
    Global,
    Shared,
    Local,
    Param,
}

/// An address: a register and bytes behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    pub(crate) space: Space,
    pub(crate) base: From,
    pub(crate) offset: i64,
}

/// How a loaded value fills its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extend {
    Zero,
    Sign,
}

/// What an instruction does.
#[derive(Debug)]
pub(crate) enum Op {
    Alu {
        f: Alu,
        d: Reg,
        a: [Reg; 4],
    },
    SetW {
        f: Compare<W>,
        a: [Reg; 2],
        out: SetOut,
    },
    SetD {
        f: Compare<D>,
        a: [Reg; 2],
        out: SetOut,
    },
    SelectW {
        d: Reg,
        a: [Reg; 2],
        by: Guard,
    },
    SelectD {
        d: Reg,
        a: [Reg; 2],
        by: Guard,
    },
    /// Predicates: `xor` with nothing is a move.
    Predicate {
        join: Join,
        d: Reg,
        a: Guard,
        b: Guard,
    },
    Logic {
        d: Reg,
        a: [Reg; 3],
        table: u8,
    },
    Convert {
        f: Convert,
        d: To,
        a: From,
    },
    /// Parts, lowest first, each of so many bits.
    Pack {
        d: To,
        parts: Box<[Reg]>,
        bits: u32,
    },
    Unpack {
        parts: Box<[To]>,
        a: From,
        bits: u32,
    },
    Load {
        at: Address,
        bytes: u32,
        extend: Extend,
        to: Box<[To]>,
    },
    Store {
        at: Address,
        bytes: u32,
        from: Box<[From]>,
    },
    Atomic(Box<Atomic>),
    Branch(u32),
    Switch {
        index: Reg,
        targets: Box<[u32]>,
    },
    Exit,
    Trap,
    /// Between blocks, which run on threads of the host.
    Fence,
    /// Hints.
    Nothing,
    Barrier {
        id: Reg,
        threads: Option<Reg>,
    },
    WarpBarrier {
        lanes: Reg,
    },
    Shuffle(Box<Shuffle>),
    Vote {
        kind: Vote,
        d: Reg,
        by: Guard,
        lanes: Reg,
    },
    ActiveMask {
        d: Reg,
    },
    LoadMatrix {
        at: Address,
        order: Order,
        to: Box<[Reg]>,
    },
    Multiply(Box<Multiply>),
    Copy {
        to: Address,
        from: Address,
        bytes: u32,
        /// Bytes really read; the rest becomes zero.
        filled: Option<Reg>,
    },
    CopyCommit,
    /// Waits until at most so many groups are under way; `None` waits for all, committed or not.
    CopyWait(Option<u32>),
}

/// Where a comparison goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetOut {
    pub(crate) d: Option<Reg>,
    pub(crate) opposite: Option<Reg>,
    pub(crate) join: Option<(Join, Guard)>,
}

/// An atomic operation.
#[derive(Debug)]
pub(crate) struct Atomic {
    pub(crate) at: Address,
    pub(crate) kind: AtomicKind,
    pub(crate) of: AtomicType,
    pub(crate) d: To,
    pub(crate) b: From,
    /// The value that `cas` writes.
    pub(crate) c: Option<From>,
}

/// What an atomic operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtomicKind {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    Swap,
    Inc,
    Dec,
}

/// What it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtomicType {
    U32,
    S32,
    U64,
    S64,
    F32,
    F64,
}

impl AtomicType {
    /// The bytes it works on.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::U32 | Self::S32 | Self::F32 => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }
}

/// `shfl`
#[derive(Debug)]
pub(crate) struct Shuffle {
    pub(crate) mode: Mode,
    pub(crate) d: Reg,
    pub(crate) valid: Option<Reg>,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    pub(crate) c: Reg,
    pub(crate) lanes: Reg,
}

/// Which lane a shuffle reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Up,
    Down,
    Butterfly,
    Index,
}

/// What lanes ask each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// How `ldmatrix` hands its elements out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Rows,
    Columns,
}

/// `mma` of 16 x 8 outputs.
#[derive(Debug)]
pub(crate) struct Multiply {
    pub(crate) elements: Elements,
    /// The depth.
    pub(crate) k: usize,
    pub(crate) d: [Reg; 4],
    pub(crate) a: Box<[Reg]>,
    pub(crate) b: Box<[Reg]>,
    pub(crate) c: [Reg; 4],
}

/// What is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elements {
    F16,
    Bf16,
    /// Bytes, each side signed or not.
    Bytes {
        a: Extend,
        b: Extend,
    },
}
