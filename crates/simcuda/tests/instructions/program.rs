//! A kernel around one instruction: each lane loads its inputs, executes, stores its outputs.

use std::fmt::Write as _;

use crate::golden::{Kind, LANES, Section};

/// The kernel's name.
pub(crate) const NAME: &str = "one";

/// Global memory that the statements may use, 64 bytes a lane.
pub(crate) const SCRATCH_BYTES: u64 = 64 * LANES as u64;

/// Every value takes this much in the arrays of inputs and outputs.
const SLOT_BYTES: usize = 8;

/// A kernel with its inputs.
pub(crate) struct Program {
    pub(crate) text: String,
    pub(crate) input: Vec<u8>,
    pub output_bytes: usize,
    outputs: usize,
}

impl Program {
    pub(crate) fn new(section: &Section) -> Self {
        let (inputs, outputs) = (section.inputs.len(), section.outputs.len());
        let mut input = Vec::new();
        for index in 0..LANES {
            // Lanes without a line repeat one: every lane executes.
            let lane = &section.lanes[index % section.lanes.len()];
            assert_eq!(lane.inputs.len(), inputs, "{}", section.statements);
            assert_eq!(lane.outputs.len(), outputs, "{}", section.statements);
            input.extend(lane.inputs.iter().flat_map(|value| value.to_le_bytes()));
        }
        Self {
            text: text(section),
            input,
            output_bytes: outputs * SLOT_BYTES * LANES,
            outputs,
        }
    }

    /// The outputs of all lanes from the bytes that the kernel wrote.
    pub(crate) fn outputs(&self, bytes: &[u8]) -> Vec<Vec<u64>> {
        let values = bytes.chunks(SLOT_BYTES);
        let values: Vec<u64> = values
            .map(|slot| u64::from_le_bytes(slot.try_into().expect("a slot")))
            .collect();
        values.chunks(self.outputs).map(<[u64]>::to_vec).collect()
    }
}

fn text(section: &Section) -> String {
    let mut out = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry {NAME}(.param .u64 {NAME}_0, .param .u64 {NAME}_1, .param .u64 {NAME}_2)\n\
         {{\n.reg .b64 in, out, g, lane;\n.reg .b32 s, id;\n.reg .b64 wide;\n\
         .shared .align 16 .b8 slots[{SCRATCH_BYTES}];\n"
    );
    for (letter, kinds) in [('a', &section.inputs), ('d', &section.outputs)] {
        for (index, kind) in kinds.iter().enumerate() {
            let class = match kind {
                Kind::Half => ".b16",
                Kind::Word => ".b32",
                Kind::Double => ".b64",
                Kind::Predicate => ".pred",
            };
            let _ = writeln!(out, ".reg {class} {letter}{index};");
        }
    }
    let steps = [
        ("in", 0, section.inputs.len()),
        ("out", 1, section.outputs.len()),
    ];
    out += "mov.u32 id, %laneid;\ncvt.u64.u32 lane, id;\n";
    for (name, param, values) in steps {
        let bytes = values * SLOT_BYTES;
        let _ = writeln!(
            out,
            "ld.param.u64 {name}, [{NAME}_{param}];\nmad.lo.u64 {name}, lane, {bytes}, {name};"
        );
    }
    let _ = writeln!(
        out,
        "ld.param.u64 g, [{NAME}_2];\nmad.lo.u64 g, lane, 64, g;\n\
         mov.u32 s, slots;\nmad.lo.u32 s, id, 64, s;"
    );
    for (index, kind) in section.inputs.iter().enumerate() {
        let at = format!("[in+{}]", index * SLOT_BYTES);
        let _ = match kind {
            Kind::Half => writeln!(out, "ld.global.b16 a{index}, {at};"),
            Kind::Word => writeln!(out, "ld.global.b32 a{index}, {at};"),
            Kind::Double => writeln!(out, "ld.global.b64 a{index}, {at};"),
            Kind::Predicate => {
                writeln!(
                    out,
                    "ld.global.b64 wide, {at};\nsetp.ne.u64 a{index}, wide, 0;"
                )
            }
        };
    }
    let _ = writeln!(out, "{}", section.statements);
    for (index, kind) in section.outputs.iter().enumerate() {
        let _ = match kind {
            Kind::Half => writeln!(out, "cvt.u64.u16 wide, d{index};"),
            Kind::Word => writeln!(out, "cvt.u64.u32 wide, d{index};"),
            Kind::Double => writeln!(out, "mov.b64 wide, d{index};"),
            Kind::Predicate => writeln!(out, "selp.b64 wide, 1, 0, d{index};"),
        };
        let _ = writeln!(out, "st.global.b64 [out+{}], wide;", index * SLOT_BYTES);
    }
    out += "ret;\n}\n";
    out
}
