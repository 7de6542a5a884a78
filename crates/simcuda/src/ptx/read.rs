//! The grammar: directives, variables, and bodies of kernels as statements.

use super::lex::{Kind, Token, tokens};
use super::{PtxError, PtxFault};

/// The most bytes that one variable of a module may have; ours are tables of a few kilobytes.
const VARIABLE_BYTES_MAX: u64 = 1 << 24;

/// The most registers that one declaration may make.
const REGISTERS_MAX: u64 = 1 << 16;

/// A whole text.
#[derive(Debug, Default)]
pub(super) struct Text<'a> {
    pub(super) version: (u32, u32),
    pub(super) target: (&'a str, u32),
    pub(super) variables: Vec<Variable<'a>>,
    pub(super) entries: Vec<Entry<'a>>,
}

/// A variable in some space.
#[derive(Debug, Clone)]
pub(super) struct Variable<'a> {
    pub(super) line: u32,
    pub(super) space: &'a str,
    pub(super) name: &'a str,
    pub(super) align: u64,
    /// `None` for an `.extern` one of unknown size.
    pub(super) bytes: Option<u64>,
    pub(super) init: Vec<u8>,
}

/// A kernel.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) params: Vec<Variable<'a>>,
    pub(super) threads_max: Option<u32>,
    pub(super) body: Vec<Statement<'a>>,
}

/// One statement of a body.
#[derive(Debug)]
pub(super) enum Statement<'a> {
    Open,
    Close,
    Registers {
        line: u32,
        class: &'a str,
        name: &'a str,
        count: Option<u32>,
    },
    Variable(Variable<'a>),
    Label {
        line: u32,
        name: &'a str,
    },
    /// The targets that a label before it stands for.
    Targets {
        line: u32,
        names: Vec<&'a str>,
    },
    Instruction(Raw<'a>),
}

/// An instruction as it is written.
#[derive(Debug)]
pub(super) struct Raw<'a> {
    pub(super) line: u32,
    pub(super) guard: Option<(&'a str, Wanted)>,
    pub(super) op: &'a str,
    pub(super) operands: Vec<Operand<'a>>,
}

/// The value of a predicate for which an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    True,
    False,
}

/// An operand as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand<'a> {
    /// A register, a variable plus bytes, or a label.
    Name(&'a str, i64),
    /// `!%p1`
    Not(&'a str),
    /// An integer, or the bits of a double.
    Number(u64),
    /// The bits of a float.
    Float(u32),
    /// `[a+b]`
    Address(Box<Operand<'a>>, i64),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `a|b`
    Pair(&'a str, &'a str),
}

struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

/// Reads a whole text.
pub(super) fn read(text: &str) -> Result<Text<'_>, PtxError> {
    let mut reader = Reader {
        tokens: tokens(text)?,
        at: 0,
    };
    let mut all = Text::default();
    while reader.at < reader.tokens.len() {
        reader.directive(&mut all)?;
    }
    Ok(all)
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn next(&mut self) -> Result<Token<'a>, PtxError> {
        let token = self.peek().ok_or_else(|| self.error(PtxFault::Syntax))?;
        self.at += 1;
        Ok(token)
    }

    fn error(&self, what: PtxFault) -> PtxError {
        let near = self.tokens.get(self.at).or(self.tokens.last());
        let line = near.map_or(0, |token| token.line);
        let from = self.tokens.partition_point(|token| token.line < line);
        let words = self.tokens[from..]
            .iter()
            .take_while(|token| token.line == line);
        PtxError {
            line,
            what,
            text: words.map(|t| t.text).collect::<Vec<_>>().join(" "),
        }
    }

    fn at_sign(&self, sign: &str) -> bool {
        self.peek().is_some_and(|token| token.is(sign))
    }

    fn take(&mut self, sign: &str) -> bool {
        let there = self.at_sign(sign);
        self.at += usize::from(there);
        there
    }

    fn want(&mut self, sign: &str) -> Result<(), PtxError> {
        if self.take(sign) {
            return Ok(());
        }
        Err(self.error(PtxFault::Syntax))
    }

    fn word(&mut self) -> Result<&'a str, PtxError> {
        match self.peek() {
            Some(token) if token.kind == Kind::Word => {
                self.at += 1;
                Ok(token.text)
            }
            _ => Err(self.error(PtxFault::Syntax)),
        }
    }

    fn directive(&mut self, all: &mut Text<'a>) -> Result<(), PtxError> {
        let start = self.at;
        let mut external = false;
        loop {
            match self.word()? {
                ".version" => {
                    all.version = self.version()?;
                    return Ok(());
                }
                ".target" => {
                    all.target = self.target()?;
                    return Ok(());
                }
                ".address_size" => {
                    if self.integer()? == 64 {
                        return Ok(());
                    }
                    self.at = start;
                    return Err(self.error(PtxFault::Directive));
                }
                ".visible" | ".weak" | ".common" => {}
                ".extern" => external = true,
                space @ (".global" | ".const" | ".shared") => {
                    let mut one = self.variable(space)?;
                    self.want(";")?;
                    if external && space != ".shared" {
                        self.at = start;
                        return Err(self.error(PtxFault::Extern));
                    }
                    if external {
                        one.bytes = None;
                    }
                    all.variables.push(one);
                    return Ok(());
                }
                ".entry" => {
                    let entry = self.entry()?;
                    all.entries.push(entry);
                    return Ok(());
                }
                ".func" => {
                    self.at = start;
                    return Err(self.error(PtxFault::Extern));
                }
                _ => {
                    self.at = start;
                    return Err(self.error(PtxFault::Directive));
                }
            }
        }
    }

    fn version(&mut self) -> Result<(u32, u32), PtxError> {
        let token = self.next()?;
        let parts = token.text.split_once('.');
        parts
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .ok_or_else(|| self.error(PtxFault::Syntax))
    }

    fn target(&mut self) -> Result<(&'a str, u32), PtxError> {
        let word = self.word()?;
        let digits = word
            .strip_prefix("sm_")
            .map(|rest| rest.trim_end_matches(['a', 'f']));
        let capability = digits.and_then(|digits| digits.parse().ok());
        while self.take(",") {
            self.word()?;
        }
        match capability {
            Some(capability) => Ok((word, capability)),
            None => Err(self.error(PtxFault::Syntax)),
        }
    }

    /// A variable behind its space, up to the sign that ends it.
    fn variable(&mut self, space: &'a str) -> Result<Variable<'a>, PtxError> {
        let line = self.peek().map_or(0, |token| token.line);
        let (mut align, mut width) = (0, 0);
        let mut lanes = 1;
        let name = loop {
            match self.word()? {
                ".align" => align = self.integer()?,
                ".v2" => lanes = 2,
                ".v4" => lanes = 4,
                ".ptr" | ".global" | ".shared" | ".const" | ".local" if space == ".param" => {}
                word if word.starts_with('.') => match type_bytes(word) {
                    Some(bytes) => width = bytes,
                    None => return Err(self.error(PtxFault::Directive)),
                },
                word => break word,
            }
        };
        let mut bytes = Some(width * lanes);
        while self.take("[") {
            if self.take("]") {
                bytes = None;
                continue;
            }
            let count = self.integer()?;
            self.want("]")?;
            bytes = bytes.and_then(|bytes| bytes.checked_mul(count));
        }
        if width == 0 || bytes.is_some_and(|bytes| bytes > VARIABLE_BYTES_MAX) {
            return Err(self.error(PtxFault::Directive));
        }
        let mut init = Vec::new();
        if self.take("=") {
            self.initialiser(width as usize, &mut init)?;
        }
        if bytes.is_none() && !init.is_empty() {
            bytes = Some(init.len() as u64);
        }
        Ok(Variable {
            line,
            space,
            name,
            align: align.max(width * lanes.min(4)).next_power_of_two(),
            bytes,
            init,
        })
    }

    fn initialiser(&mut self, width: usize, init: &mut Vec<u8>) -> Result<(), PtxError> {
        if self.take("{") {
            while !self.take("}") {
                self.initialiser(width, init)?;
                self.take(",");
            }
            return Ok(());
        }
        let bits = match self.operand()? {
            Operand::Number(bits) => bits,
            Operand::Float(bits) => u64::from(bits),
            _ => return Err(self.error(PtxFault::Directive)),
        };
        init.extend_from_slice(&bits.to_le_bytes()[..width]);
        Ok(())
    }

    fn entry(&mut self) -> Result<Entry<'a>, PtxError> {
        let name = self.word()?;
        let mut params = Vec::new();
        if self.take("(") {
            while !self.take(")") {
                if self.word()? != ".param" {
                    return Err(self.error(PtxFault::Directive));
                }
                params.push(self.variable(".param")?);
                self.take(",");
            }
        }
        let mut threads_max = None;
        while !self.at_sign("{") {
            let directive = self.word()?;
            let mut product = 1u64;
            loop {
                product = product.saturating_mul(self.integer()?);
                if !self.take(",") {
                    break;
                }
            }
            match directive {
                ".maxntid" | ".reqntid" => threads_max = u32::try_from(product).ok(),
                ".minnctapersm" | ".maxnreg" => {}
                _ => return Err(self.error(PtxFault::Directive)),
            }
        }
        let body = self.body()?;
        Ok(Entry {
            name,
            params,
            threads_max,
            body,
        })
    }

    fn body(&mut self) -> Result<Vec<Statement<'a>>, PtxError> {
        let mut list = Vec::new();
        let mut depth = 0;
        loop {
            if self.take("{") {
                depth += 1;
                list.push(Statement::Open);
            } else if self.take("}") {
                depth -= 1;
                list.push(Statement::Close);
                if depth == 0 {
                    return Ok(list);
                }
            } else if !self.take(";") {
                self.statement(&mut list)?;
            }
        }
    }

    fn statement(&mut self, list: &mut Vec<Statement<'a>>) -> Result<(), PtxError> {
        let line = self.peek().map_or(0, |token| token.line);
        let guard = self.guard()?;
        let word = self.word()?;
        if guard.is_none() && self.take(":") {
            list.push(Statement::Label { line, name: word });
            return Ok(());
        }
        match word {
            ".reg" => self.registers(line, list)?,
            ".shared" | ".local" => {
                let one = self.variable(word)?;
                list.push(Statement::Variable(one));
            }
            ".pragma" => {
                self.next()?;
            }
            ".loc" => {
                while self.peek().is_some_and(|token| token.line == line) {
                    self.at += 1;
                }
                return Ok(());
            }
            ".branchtargets" => {
                let mut names = vec![self.word()?];
                while self.take(",") {
                    names.push(self.word()?);
                }
                list.push(Statement::Targets { line, names });
            }
            op if op.starts_with('.') => return Err(self.error(PtxFault::Directive)),
            op => {
                let operands = self.operands()?;
                list.push(Statement::Instruction(Raw {
                    line,
                    guard,
                    op,
                    operands,
                }));
            }
        }
        self.want(";")
    }

    fn guard(&mut self) -> Result<Option<(&'a str, Wanted)>, PtxError> {
        if !self.take("@") {
            return Ok(None);
        }
        let wanted = if self.take("!") {
            Wanted::False
        } else {
            Wanted::True
        };
        Ok(Some((self.word()?, wanted)))
    }

    fn registers(&mut self, line: u32, list: &mut Vec<Statement<'a>>) -> Result<(), PtxError> {
        let class = self.word()?;
        loop {
            let name = self.word()?;
            let mut count = None;
            if self.take("<") {
                let number = self.integer()?;
                if number > REGISTERS_MAX {
                    return Err(self.error(PtxFault::Directive));
                }
                count = Some(number as u32);
                self.want(">")?;
            }
            list.push(Statement::Registers {
                line,
                class,
                name,
                count,
            });
            if !self.take(",") {
                return Ok(());
            }
        }
    }

    fn operands(&mut self) -> Result<Vec<Operand<'a>>, PtxError> {
        let mut list = Vec::new();
        while !self.at_sign(";") {
            list.push(self.operand()?);
            if !self.take(",") {
                break;
            }
        }
        Ok(list)
    }

    fn operand(&mut self) -> Result<Operand<'a>, PtxError> {
        if self.take("!") {
            return Ok(Operand::Not(self.word()?));
        }
        if self.take("{") {
            let mut parts = Vec::new();
            while !self.take("}") {
                parts.push(self.operand()?);
                self.take(",");
            }
            return Ok(Operand::Vector(parts));
        }
        if self.take("[") {
            let base = self.operand()?;
            self.want("]")?;
            return Ok(match base {
                Operand::Name(name, offset) => {
                    Operand::Address(Box::new(Operand::Name(name, 0)), offset)
                }
                other => Operand::Address(Box::new(other), 0),
            });
        }
        match self.peek() {
            Some(token) if token.kind == Kind::Word => {
                self.at += 1;
                if self.take("|") {
                    return Ok(Operand::Pair(token.text, self.word()?));
                }
                // `a+4`, `a+-4` and `a-4` are all written.
                let offset = match self.take("+") || self.at_sign("-") {
                    true => self.signed()?,
                    false => 0,
                };
                Ok(Operand::Name(token.text, offset))
            }
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Result<Operand<'a>, PtxError> {
        let negative = self.take("-");
        let token = self.next()?;
        let parsed = number(token).map(|value| match value {
            Operand::Number(bits) if negative => Operand::Number(bits.wrapping_neg()),
            other => other,
        });
        parsed.ok_or_else(|| self.error(PtxFault::Syntax))
    }

    fn signed(&mut self) -> Result<i64, PtxError> {
        match self.number()? {
            Operand::Number(bits) => Ok(bits as i64),
            _ => Err(self.error(PtxFault::Syntax)),
        }
    }

    fn integer(&mut self) -> Result<u64, PtxError> {
        let value = self.signed()?;
        u64::try_from(value).map_err(|_| self.error(PtxFault::Syntax))
    }
}

fn number<'a>(token: Token<'a>) -> Option<Operand<'a>> {
    if token.kind != Kind::Number {
        return None;
    }
    let text = token.text;
    if let Some(hex) = text.strip_prefix("0f").or(text.strip_prefix("0F")) {
        return u32::from_str_radix(hex, 16).ok().map(Operand::Float);
    }
    if let Some(hex) = text.strip_prefix("0d").or(text.strip_prefix("0D")) {
        return u64::from_str_radix(hex, 16).ok().map(Operand::Number);
    }
    let text = text.trim_end_matches('U');
    let value = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    value.ok().map(Operand::Number)
}

/// The bytes of a value of a type, by its name with the dot.
pub(super) fn type_bytes(name: &str) -> Option<u64> {
    Some(match name {
        ".b8" | ".u8" | ".s8" => 1,
        ".b16" | ".u16" | ".s16" | ".f16" | ".bf16" => 2,
        ".b32" | ".u32" | ".s32" | ".f32" | ".f16x2" | ".bf16x2" => 4,
        ".b64" | ".u64" | ".s64" | ".f64" => 8,
        _ => return None,
    })
}
