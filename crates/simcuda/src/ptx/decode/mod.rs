//! Statements of a body to instructions that can be executed.

mod arithmetic;
mod memory;
mod names;
mod share;
mod warp;

use std::collections::HashMap;

use crate::exec::code::{Code, Guard, Instruction, Op};

use super::read::{Entry, Raw, Statement, Variable, Wanted};
use super::{PtxError, PtxFault};

pub(super) use names::Names;

/// Writes the instructions of one kernel.
pub(super) struct Coder<'a> {
    names: Names<'a>,
    code: Code,
    /// Instructions whose target is not known yet.
    open: Vec<Open<'a>>,
    labels: HashMap<(u32, &'a str), u32>,
    tables: HashMap<&'a str, (Vec<&'a str>, Vec<u32>)>,
    line: u32,
}

/// A branch, by its place in the code, to a label as seen from its scopes.
struct Open<'a> {
    at: usize,
    label: &'a str,
    scopes: Vec<u32>,
}

/// What is wrong with a statement, its line to be added.
type Coded<T> = Result<T, PtxFault>;

/// A decoded kernel.
pub(super) struct Decoded {
    pub(super) code: Code,
    pub(super) shared_bytes: u32,
    pub(super) local_bytes: u32,
    pub(super) registers: u32,
}

/// Chooses the instructions of a kernel.
pub(super) fn decode<'a>(
    entry: &'a Entry<'a>,
    globals: &'a [Variable<'a>],
) -> Result<Decoded, PtxError> {
    let mut coder = Coder {
        names: Names::new(entry, globals),
        code: Code::default(),
        open: Vec::new(),
        labels: HashMap::new(),
        tables: HashMap::new(),
        line: 0,
    };
    let mut pending = None;
    for statement in &entry.body {
        coder.statement(statement, &mut pending)?;
    }
    coder.emit(None, Op::Exit);
    coder.resolve()?;
    let Coder {
        names, mut code, ..
    } = coder;
    names.finish(&mut code);
    share::share(&mut code);
    Ok(Decoded {
        shared_bytes: names.shared_bytes(),
        local_bytes: names.local_bytes(),
        registers: names.registers(),
        code,
    })
}

impl<'a> Coder<'a> {
    fn statement(
        &mut self,
        statement: &'a Statement<'a>,
        pending: &mut Option<&'a str>,
    ) -> Result<(), PtxError> {
        match statement {
            Statement::Open => self.names.open(),
            Statement::Close => self.names.close(),
            Statement::Registers {
                line,
                class,
                name,
                count,
            } => {
                self.line = *line;
                let done = self.names.declare(class, name, *count);
                done.map_err(|what| self.error(what, name))?;
            }
            Statement::Variable(variable) => {
                self.line = variable.line;
                let done = self.names.variable(variable);
                done.map_err(|what| self.error(what, variable.name))?;
            }
            Statement::Label { line, name } => {
                self.line = *line;
                let key = (self.names.scope(), *name);
                if self
                    .labels
                    .insert(key, self.code.list.len() as u32)
                    .is_some()
                {
                    return Err(self.error(PtxFault::Name, name));
                }
                *pending = Some(name);
            }
            Statement::Targets { line, names } => {
                self.line = *line;
                let Some(label) = pending.take() else {
                    return Err(self.error(PtxFault::Syntax, ".branchtargets"));
                };
                let scopes = self.names.scopes().to_vec();
                self.tables.insert(label, (names.clone(), scopes));
            }
            Statement::Instruction(raw) => {
                self.line = raw.line;
                let done = self.instruction(raw);
                done.map_err(|what| self.error(what, raw.op))?;
            }
        }
        Ok(())
    }

    fn error(&self, what: PtxFault, text: &str) -> PtxError {
        PtxError {
            line: self.line,
            what,
            text: text.to_owned(),
        }
    }

    fn instruction(&mut self, raw: &'a Raw<'a>) -> Coded<()> {
        let guard = match raw.guard {
            None => None,
            Some((name, wanted)) => Some(Guard {
                reg: self.names.predicate(name)?,
                flip: match wanted {
                    Wanted::True => 0,
                    Wanted::False => u32::MAX,
                },
            }),
        };
        let first = raw.op.split('.').next().unwrap_or_default();
        let op = match first {
            "bra" => {
                self.jump(raw)?;
                Op::Branch(0)
            }
            "brx" => self.switch(raw)?,
            "ret" | "exit" => Op::Exit,
            "trap" => Op::Trap,
            "membar" | "fence" => Op::Fence,
            "prefetch" | "prefetchu" | "applypriority" => Op::Nothing,
            "ld" | "ldu" | "st" | "atom" | "red" | "cp" => self.memory(first, raw)?,
            "bar" | "barrier" | "shfl" | "vote" | "activemask" | "ldmatrix" | "mma" => {
                self.warp(first, raw)?
            }
            _ => self.arithmetic(first, raw, guard)?,
        };
        self.emit(guard, op);
        Ok(())
    }

    fn emit(&mut self, guard: Option<Guard>, op: Op) {
        let line = self.line;
        self.code.list.push(Instruction { op, guard, line });
    }

    fn jump(&mut self, raw: &'a Raw<'a>) -> Coded<()> {
        let [super::read::Operand::Name(label, 0)] = raw.operands.as_slice() else {
            return Err(PtxFault::Operand);
        };
        self.open.push(Open {
            at: self.code.list.len(),
            label,
            scopes: self.names.scopes().to_vec(),
        });
        Ok(())
    }

    fn switch(&mut self, raw: &'a Raw<'a>) -> Coded<Op> {
        use super::read::Operand::Name;
        if !matches!(raw.op, "brx.idx" | "brx.idx.uni") {
            return Err(PtxFault::Instruction);
        }
        let [index, Name(table, 0)] = raw.operands.as_slice() else {
            return Err(PtxFault::Operand);
        };
        let index = self.word(index)?;
        let (names, scopes) = self.tables.get(table).ok_or(PtxFault::Name)?;
        let at = self.code.list.len();
        for label in names {
            self.open.push(Open {
                at,
                label,
                scopes: scopes.clone(),
            });
        }
        Ok(Op::Switch {
            index,
            targets: Box::new([]),
        })
    }

    /// Puts the places of labels into branches.
    fn resolve(&mut self) -> Result<(), PtxError> {
        for open in std::mem::take(&mut self.open) {
            let Open { at, label, scopes } = &open;
            let found = scopes
                .iter()
                .rev()
                .find_map(|scope| self.labels.get(&(*scope, *label)));
            let Some(&target) = found else {
                self.line = self.code.list[*at].line;
                return Err(self.error(PtxFault::Name, label));
            };
            match &mut self.code.list[*at].op {
                Op::Branch(to) => *to = target,
                Op::Switch { targets, .. } => {
                    let mut list = std::mem::take(targets).into_vec();
                    list.push(target);
                    *targets = list.into_boxed_slice();
                }
                _ => {}
            }
        }
        Ok(())
    }
}
