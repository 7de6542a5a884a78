//! What names in a body stand for: registers, numbers, special registers and variables.

use std::collections::HashMap;

use crate::exec::code::{Code, From, Guard, LaneMask, Preset, Reg, Special, To};

use super::super::PtxFault;
use super::super::read::{Entry, Operand, Variable};
use super::{Coded, Coder};

/// The files of registers, and which name is in which.
pub(in super::super) struct Names<'a> {
    scopes: Vec<u32>,
    scopes_made: u32,
    /// Of each open scope: single registers and ranges by the words before their numbers.
    registers: Vec<HashMap<&'a str, Declared>>,
    words: u32,
    doubles: u32,
    predicates: u32,
    declared: u32,
    presets: Vec<Preset>,
    known_words: HashMap<u32, Reg>,
    known_doubles: HashMap<u64, Reg>,
    known_specials: HashMap<&'a str, Reg>,
    shared: HashMap<&'a str, u64>,
    shared_bytes: u64,
    dynamic_align: u64,
    local: HashMap<&'a str, u64>,
    local_bytes: u64,
    params: HashMap<&'a str, u64>,
    globals: &'a [Variable<'a>],
}

#[derive(Debug, Clone, Copy)]
struct Declared {
    class: Class,
    first: Reg,
    count: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Predicate,
    Word,
    Double,
}

/// What a variable's name stands for.
enum Place {
    /// An address in its space.
    Fixed(u64),
    /// Behind the kernel's own shared memory.
    Dynamic,
    /// A global of the module.
    Global(usize),
}

impl<'a> Names<'a> {
    pub(super) fn new(entry: &'a Entry<'a>, globals: &'a [Variable<'a>]) -> Self {
        let mut params = HashMap::new();
        for (variable, param) in entry.params.iter().zip(super::super::layout(&entry.params)) {
            params.insert(variable.name, param.offset as u64);
        }
        Self {
            scopes: vec![0],
            scopes_made: 0,
            registers: vec![HashMap::new()],
            words: 0,
            doubles: 0,
            predicates: 0,
            declared: 0,
            presets: Vec::new(),
            known_words: HashMap::new(),
            known_doubles: HashMap::new(),
            known_specials: HashMap::new(),
            shared: HashMap::new(),
            shared_bytes: 0,
            dynamic_align: 16,
            local: HashMap::new(),
            local_bytes: 0,
            params,
            globals,
        }
    }

    pub(super) fn open(&mut self) {
        self.scopes_made += 1;
        self.scopes.push(self.scopes_made);
        self.registers.push(HashMap::new());
    }

    pub(super) fn close(&mut self) {
        self.scopes.pop();
        self.registers.pop();
    }

    pub(super) fn scope(&self) -> u32 {
        self.scopes.last().copied().unwrap_or(0)
    }

    pub(super) fn scopes(&self) -> &[u32] {
        &self.scopes
    }

    pub(super) fn shared_bytes(&self) -> u32 {
        self.shared_bytes.next_multiple_of(self.dynamic_align) as u32
    }

    pub(super) fn local_bytes(&self) -> u32 {
        self.local_bytes.next_multiple_of(16) as u32
    }

    pub(super) fn registers(&self) -> u32 {
        self.declared
    }

    pub(super) fn finish(&self, code: &mut Code) {
        code.words = self.words;
        code.doubles = self.doubles;
        code.predicates = self.predicates;
        code.presets.clone_from(&self.presets);
    }

    pub(super) fn declare(&mut self, class: &str, name: &'a str, count: Option<u32>) -> Coded<()> {
        let class = match class {
            ".pred" => Class::Predicate,
            ".b8" | ".u8" | ".s8" | ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" | ".b32"
            | ".u32" | ".s32" | ".f32" | ".f16x2" | ".bf16x2" => Class::Word,
            ".b64" | ".u64" | ".s64" | ".f64" => Class::Double,
            _ => return Err(PtxFault::Directive),
        };
        let number = count.unwrap_or(1);
        let first = self.grow(class, number);
        if class != Class::Predicate {
            self.declared += number * if class == Class::Double { 2 } else { 1 };
        }
        let one = Declared {
            class,
            first,
            count,
        };
        if let Some(scope) = self.registers.last_mut() {
            scope.insert(name, one);
        }
        Ok(())
    }

    fn grow(&mut self, class: Class, number: u32) -> Reg {
        let file = match class {
            Class::Predicate => &mut self.predicates,
            Class::Word => &mut self.words,
            Class::Double => &mut self.doubles,
        };
        let first = *file;
        *file += number;
        first
    }

    /// Reserves a variable's bytes.
    pub(super) fn variable(&mut self, variable: &Variable<'a>) -> Coded<()> {
        let bytes = variable.bytes.ok_or(PtxFault::Directive)?;
        let (map, used) = match variable.space {
            ".shared" => (&mut self.shared, &mut self.shared_bytes),
            ".local" => (&mut self.local, &mut self.local_bytes),
            _ => return Err(PtxFault::Directive),
        };
        let offset = used.next_multiple_of(variable.align);
        map.insert(variable.name, offset);
        *used = offset + bytes;
        Ok(())
    }

    fn register(&self, name: &str) -> Option<(Class, Reg)> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<u32> = name[prefix.len()..].parse().ok();
        for scope in self.registers.iter().rev() {
            if let Some(one) = scope.get(name).filter(|one| one.count.is_none()) {
                return Some((one.class, one.first));
            }
            let range = scope.get(prefix);
            if let (Some(range), Some(number)) = (range, number)
                && range.count.is_some_and(|count| number < count)
            {
                return Some((range.class, range.first + number));
            }
        }
        None
    }

    pub(super) fn predicate(&self, name: &str) -> Coded<Reg> {
        match self.register(name) {
            Some((Class::Predicate, reg)) => Ok(reg),
            Some(_) => Err(PtxFault::Operand),
            None => Err(PtxFault::Name),
        }
    }

    /// A word that no name stands for.
    pub(super) fn spare_predicate(&mut self) -> Reg {
        self.grow(Class::Predicate, 1)
    }

    fn known_word(&mut self, value: u32) -> Reg {
        if let Some(reg) = self.known_words.get(&value) {
            return *reg;
        }
        let reg = self.grow(Class::Word, 1);
        self.known_words.insert(value, reg);
        self.presets.push(Preset::Word(reg, value));
        reg
    }

    fn known_double(&mut self, value: u64) -> Reg {
        if let Some(reg) = self.known_doubles.get(&value) {
            return *reg;
        }
        let reg = self.grow(Class::Double, 1);
        self.known_doubles.insert(value, reg);
        self.presets.push(Preset::Double(reg, value));
        reg
    }

    fn special_register(&mut self, name: &'a str) -> Coded<Reg> {
        if let Some(reg) = self.known_specials.get(name) {
            return Ok(*reg);
        }
        let what = special(name).ok_or(PtxFault::Name)?;
        let reg = self.grow(Class::Word, 1);
        self.known_specials.insert(name, reg);
        self.presets.push(Preset::Special(reg, what));
        Ok(reg)
    }

    fn place(&mut self, name: &str) -> Coded<Place> {
        let own = [&self.shared, &self.local, &self.params];
        if let Some(offset) = own.iter().find_map(|map| map.get(name)) {
            return Ok(Place::Fixed(*offset));
        }
        let index = self.globals.iter().position(|one| one.name == name);
        let variable = index.map(|index| &self.globals[index]);
        match variable {
            Some(one) if one.space == ".shared" && one.bytes.is_none() => {
                self.dynamic_align = self.dynamic_align.max(one.align);
                Ok(Place::Dynamic)
            }
            Some(one) if one.space == ".shared" => {
                self.variable(&one.clone())?;
                self.shared
                    .get(one.name)
                    .map(|offset| Place::Fixed(*offset))
                    .ok_or(PtxFault::Name)
            }
            Some(one) => {
                let placed = self.globals.iter().filter(|other| other.space != ".shared");
                let number = placed.take_while(|other| other.name != one.name).count();
                Ok(Place::Global(number))
            }
            None => Err(PtxFault::Name),
        }
    }

    /// A variable's address as a double.
    fn address_double(&mut self, name: &str, offset: i64) -> Coded<Reg> {
        let preset = match self.place(name)? {
            Place::Fixed(at) => return Ok(self.known_double(at.wrapping_add_signed(offset))),
            Place::Dynamic => Preset::DynamicDouble(self.doubles, offset as u64),
            Place::Global(index) => Preset::Global(self.doubles, index, offset as u64),
        };
        self.presets.push(preset);
        Ok(self.grow(Class::Double, 1))
    }

    fn address_word(&mut self, name: &str, offset: i64) -> Coded<Reg> {
        match self.place(name)? {
            Place::Fixed(at) => Ok(self.known_word(at.wrapping_add_signed(offset) as u32)),
            Place::Dynamic => {
                let preset = Preset::DynamicWord(self.words, offset as u32);
                self.presets.push(preset);
                Ok(self.grow(Class::Word, 1))
            }
            Place::Global(_) => Err(PtxFault::Operand),
        }
    }
}

impl<'a> Coder<'a> {
    /// A source of up to 32 bits.
    pub(super) fn word(&mut self, operand: &Operand<'a>) -> Coded<Reg> {
        match *operand {
            Operand::Number(bits) => Ok(self.names.known_word(bits as u32)),
            Operand::Float(bits) => Ok(self.names.known_word(bits)),
            Operand::Name(name, 0) if self.names.register(name).is_some() => {
                match self.names.register(name) {
                    Some((Class::Word, reg)) => Ok(reg),
                    _ => Err(PtxFault::Operand),
                }
            }
            Operand::Name(name, 0) if name.starts_with('%') => self.names.special_register(name),
            Operand::Name(name, offset) => self.names.address_word(name, offset),
            _ => Err(PtxFault::Operand),
        }
    }

    /// A source of 64 bits.
    pub(super) fn double(&mut self, operand: &Operand<'a>) -> Coded<Reg> {
        match *operand {
            Operand::Number(bits) => Ok(self.names.known_double(bits)),
            Operand::Name(name, 0) if self.names.register(name).is_some() => {
                match self.names.register(name) {
                    Some((Class::Double, reg)) => Ok(reg),
                    _ => Err(PtxFault::Operand),
                }
            }
            Operand::Name(name, offset) => self.names.address_double(name, offset),
            _ => Err(PtxFault::Operand),
        }
    }

    /// A source predicate, `!p`, or 0 and 1 for false and true.
    pub(super) fn condition(&mut self, operand: &Operand<'a>) -> Coded<Guard> {
        match *operand {
            Operand::Name(name, 0) => Ok(Guard {
                reg: self.names.predicate(name)?,
                flip: 0,
            }),
            Operand::Not(name) => Ok(Guard {
                reg: self.names.predicate(name)?,
                flip: u32::MAX,
            }),
            // A predicate that nothing writes is false.
            Operand::Number(value) => Ok(Guard {
                reg: self.names.spare_predicate(),
                flip: if value == 0 { 0 } else { u32::MAX },
            }),
            _ => Err(PtxFault::Operand),
        }
    }

    /// Where a value goes, by the declaration of its name.
    pub(super) fn to(&self, operand: &Operand<'a>) -> Coded<To> {
        match *operand {
            Operand::Name("_", 0) => Ok(To::Nowhere),
            Operand::Name(name, 0) => match self.names.register(name) {
                Some((Class::Word, reg)) => Ok(To::Word(reg)),
                Some((Class::Double, reg)) => Ok(To::Double(reg)),
                Some(_) => Err(PtxFault::Operand),
                None => Err(PtxFault::Name),
            },
            _ => Err(PtxFault::Operand),
        }
    }

    pub(super) fn to_word(&self, operand: &Operand<'a>) -> Coded<Reg> {
        match self.to(operand)? {
            To::Word(reg) => Ok(reg),
            _ => Err(PtxFault::Operand),
        }
    }

    pub(super) fn to_double(&self, operand: &Operand<'a>) -> Coded<Reg> {
        match self.to(operand)? {
            To::Double(reg) => Ok(reg),
            _ => Err(PtxFault::Operand),
        }
    }

    pub(super) fn to_predicate(&self, operand: &Operand<'a>) -> Coded<Reg> {
        match *operand {
            Operand::Name(name, 0) => self.names.predicate(name),
            _ => Err(PtxFault::Operand),
        }
    }

    /// A source of so many bytes: a number fits either file, a name has its own.
    pub(super) fn from(&mut self, operand: &Operand<'a>, bytes: u32) -> Coded<From> {
        match *operand {
            Operand::Name(name, 0) => match self.names.register(name) {
                Some((Class::Word, reg)) => Ok(From::Word(reg)),
                Some((Class::Double, reg)) => Ok(From::Double(reg)),
                Some(_) => Err(PtxFault::Operand),
                None if bytes == 8 => self.double(operand).map(From::Double),
                None => self.word(operand).map(From::Word),
            },
            _ if bytes == 8 => self.double(operand).map(From::Double),
            _ => self.word(operand).map(From::Word),
        }
    }
}

fn special(name: &str) -> Option<Special> {
    let axis = |name: &str| match name {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    if let Some((base, part)) = name.split_once('.') {
        let axis = axis(part)?;
        return Some(match base {
            "%tid" => Special::Thread(axis),
            "%ntid" => Special::Threads(axis),
            "%ctaid" => Special::Block(axis),
            "%nctaid" => Special::Blocks(axis),
            _ => return None,
        });
    }
    Some(match name {
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        "%nwarpid" => Special::Warps,
        "%lanemask_eq" => Special::LaneMask(LaneMask::Equal),
        "%lanemask_lt" => Special::LaneMask(LaneMask::Below),
        "%lanemask_le" => Special::LaneMask(LaneMask::UpTo),
        "%lanemask_gt" => Special::LaneMask(LaneMask::Above),
        "%lanemask_ge" => Special::LaneMask(LaneMask::From),
        _ => return None,
    })
}
