//! Every kernel module in its flavours, sorted by name.
//! Written by `cargo xtask kernels`; not to be edited.

use super::Module;

pub(super) const MODULES: &[Module] = &[
    Module {
        name: "add",
        sm75: include_str!("../../../../kernels/ptx/add.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/add.sm80.ptx"),
    },
    Module {
        name: "attention",
        sm75: include_str!("../../../../kernels/ptx/attention.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/attention.sm80.ptx"),
    },
    Module {
        name: "causal_conv",
        sm75: include_str!("../../../../kernels/ptx/causal_conv.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/causal_conv.sm80.ptx"),
    },
    Module {
        name: "delta_net",
        sm75: include_str!("../../../../kernels/ptx/delta_net.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/delta_net.sm80.ptx"),
    },
    Module {
        name: "experts_f32",
        sm75: include_str!("../../../../kernels/ptx/experts_f32.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_f32.sm80.ptx"),
    },
    Module {
        name: "experts_iq1_s",
        sm75: include_str!("../../../../kernels/ptx/experts_iq1_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq1_s.sm80.ptx"),
    },
    Module {
        name: "experts_q4_k",
        sm75: include_str!("../../../../kernels/ptx/experts_q4_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q4_k.sm80.ptx"),
    },
    Module {
        name: "experts_q6_k",
        sm75: include_str!("../../../../kernels/ptx/experts_q6_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q6_k.sm80.ptx"),
    },
    Module {
        name: "experts_route",
        sm75: include_str!("../../../../kernels/ptx/experts_route.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_route.sm80.ptx"),
    },
    Module {
        name: "gate",
        sm75: include_str!("../../../../kernels/ptx/gate.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gate.sm80.ptx"),
    },
    Module {
        name: "part",
        sm75: include_str!("../../../../kernels/ptx/part.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/part.sm80.ptx"),
    },
    Module {
        name: "quantize",
        sm75: include_str!("../../../../kernels/ptx/quantize.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/quantize.sm80.ptx"),
    },
    Module {
        name: "rms_norm",
        sm75: include_str!("../../../../kernels/ptx/rms_norm.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/rms_norm.sm80.ptx"),
    },
    Module {
        name: "rope",
        sm75: include_str!("../../../../kernels/ptx/rope.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/rope.sm80.ptx"),
    },
    Module {
        name: "scale",
        sm75: include_str!("../../../../kernels/ptx/scale.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/scale.sm80.ptx"),
    },
    Module {
        name: "top",
        sm75: include_str!("../../../../kernels/ptx/top.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/top.sm80.ptx"),
    },
];
