//! The golden files: sections of one program each, lines of one lane each.

use std::fmt::Write as _;

/// The files, by what their instructions work on.
pub(crate) const FILES: &[(&str, &str)] = &[
    (
        "integer",
        include_str!("../golden/instructions_integer.txt"),
    ),
    ("float", include_str!("../golden/instructions_float.txt")),
    (
        "compare",
        include_str!("../golden/instructions_compare.txt"),
    ),
    (
        "convert",
        include_str!("../golden/instructions_convert.txt"),
    ),
    (
        "approximate",
        include_str!("../golden/instructions_approximate.txt"),
    ),
    ("warp", include_str!("../golden/instructions_warp.txt")),
    ("memory", include_str!("../golden/instructions_memory.txt")),
];

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;

/// What a register of a program holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Half,
    Word,
    Double,
    Predicate,
}

/// One program with its lanes.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) statements: String,
    pub(crate) inputs: Vec<Kind>,
    pub(crate) outputs: Vec<Kind>,
    /// How far the bits of a float may be off.
    pub(crate) ulp: u64,
    pub(crate) lanes: Vec<Lane>,
}

/// One line.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) inputs: Vec<u64>,
    pub(crate) outputs: Vec<u64>,
    /// What a card gave, if it was recorded: its name and the outputs.
    pub(crate) card: Option<(String, Vec<u64>)>,
}

/// All sections of a file.
pub(crate) fn read(text: &str) -> Vec<Section> {
    let mut list: Vec<Section> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix('[') {
            list.push(header(rest));
        } else {
            let section = list.last_mut().expect("a header before lines");
            section.lanes.push(lane(line));
        }
    }
    for section in &list {
        let full = (1..=LANES).contains(&section.lanes.len());
        assert!(
            full,
            "{}: {} lanes",
            section.statements,
            section.lanes.len()
        );
    }
    list
}

fn header(line: &str) -> Section {
    let (statements, rest) = line.rsplit_once("] ").expect("statements in brackets");
    let mut section = Section {
        statements: statements.to_owned(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        ulp: 0,
        lanes: Vec::new(),
    };
    for word in rest.split(' ') {
        match word.split_once('=').expect("name=value") {
            ("in", kinds) => section.inputs = kinds.chars().map(kind).collect(),
            ("out", kinds) => section.outputs = kinds.chars().map(kind).collect(),
            ("ulp", number) => section.ulp = number.parse().expect("a number"),
            other => panic!("{other:?}"),
        }
    }
    section
}

fn kind(letter: char) -> Kind {
    match letter {
        'h' => Kind::Half,
        'w' => Kind::Word,
        'd' => Kind::Double,
        'p' => Kind::Predicate,
        other => panic!("{other}"),
    }
}

fn lane(line: &str) -> Lane {
    let (values, card) = match line.split_once(" | ") {
        Some((values, card)) => (values, Some(card)),
        None => (line, None),
    };
    let (inputs, outputs) = values.split_once(" -> ").expect("an arrow");
    Lane {
        inputs: bits(inputs),
        outputs: bits(outputs),
        card: card.map(|card| {
            let (name, values) = card.split_once(' ').expect("a card's name");
            (name.to_owned(), bits(values))
        }),
    }
}

fn bits(text: &str) -> Vec<u64> {
    let parse = |word| u64::from_str_radix(word, 16).expect("hexadecimal");
    text.split(' ').map(parse).collect()
}

impl Section {
    /// Compares the outputs of all lanes with what was recorded on a card, or else with the ISA.
    pub(crate) fn compare(&self, found: &[Vec<u64>]) -> Result<(), String> {
        let mut faults = String::new();
        for (index, (lane, found)) in self.lanes.iter().zip(found).enumerate() {
            let by_card = lane.card.as_ref().map(|(_, outputs)| outputs);
            let wanted = by_card.unwrap_or(&lane.outputs);
            let near = |(a, b): (&u64, &u64)| a.abs_diff(*b) <= self.ulp;
            if !wanted.iter().zip(found).all(near) && faults.len() < 300 {
                let inputs = &lane.inputs;
                let _ = write!(
                    faults,
                    " lane {index}: of {inputs:x?} wanted {wanted:x?} found {found:x?};"
                );
            }
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }
}
