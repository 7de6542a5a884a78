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
        sm80: include_str!("../../../../kernels/ptx/causal_conv.sm75.ptx"),
    },
    Module {
        name: "delta_net",
        sm75: include_str!("../../../../kernels/ptx/delta_net.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/delta_net.sm75.ptx"),
    },
    Module {
        name: "embed_bf16",
        sm75: include_str!("../../../../kernels/ptx/embed_bf16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_bf16.sm80.ptx"),
    },
    Module {
        name: "embed_f16",
        sm75: include_str!("../../../../kernels/ptx/embed_f16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_f16.sm80.ptx"),
    },
    Module {
        name: "embed_f32",
        sm75: include_str!("../../../../kernels/ptx/embed_f32.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_f32.sm80.ptx"),
    },
    Module {
        name: "embed_iq1_m",
        sm75: include_str!("../../../../kernels/ptx/embed_iq1_m.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_iq1_m.sm75.ptx"),
    },
    Module {
        name: "embed_iq1_s",
        sm75: include_str!("../../../../kernels/ptx/embed_iq1_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_iq1_s.sm75.ptx"),
    },
    Module {
        name: "embed_iq2_s",
        sm75: include_str!("../../../../kernels/ptx/embed_iq2_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_iq2_s.sm75.ptx"),
    },
    Module {
        name: "embed_iq2_xs",
        sm75: include_str!("../../../../kernels/ptx/embed_iq2_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_iq2_xs.sm75.ptx"),
    },
    Module {
        name: "embed_iq2_xxs",
        sm75: include_str!("../../../../kernels/ptx/embed_iq2_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_iq2_xxs.sm75.ptx"),
    },
    Module {
        name: "embed_iq3_s",
        sm75: include_str!("../../../../kernels/ptx/embed_iq3_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_iq3_s.sm75.ptx"),
    },
    Module {
        name: "embed_iq3_xxs",
        sm75: include_str!("../../../../kernels/ptx/embed_iq3_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_iq3_xxs.sm75.ptx"),
    },
    Module {
        name: "embed_iq4_nl",
        sm75: include_str!("../../../../kernels/ptx/embed_iq4_nl.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_iq4_nl.sm80.ptx"),
    },
    Module {
        name: "embed_iq4_xs",
        sm75: include_str!("../../../../kernels/ptx/embed_iq4_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_iq4_xs.sm75.ptx"),
    },
    Module {
        name: "embed_mxfp4",
        sm75: include_str!("../../../../kernels/ptx/embed_mxfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_mxfp4.sm80.ptx"),
    },
    Module {
        name: "embed_nvfp4",
        sm75: include_str!("../../../../kernels/ptx/embed_nvfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_nvfp4.sm75.ptx"),
    },
    Module {
        name: "embed_q2_k",
        sm75: include_str!("../../../../kernels/ptx/embed_q2_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q2_k.sm80.ptx"),
    },
    Module {
        name: "embed_q3_k",
        sm75: include_str!("../../../../kernels/ptx/embed_q3_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q3_k.sm80.ptx"),
    },
    Module {
        name: "embed_q4_0",
        sm75: include_str!("../../../../kernels/ptx/embed_q4_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q4_0.sm75.ptx"),
    },
    Module {
        name: "embed_q4_1",
        sm75: include_str!("../../../../kernels/ptx/embed_q4_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q4_1.sm75.ptx"),
    },
    Module {
        name: "embed_q4_k",
        sm75: include_str!("../../../../kernels/ptx/embed_q4_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q4_k.sm75.ptx"),
    },
    Module {
        name: "embed_q5_0",
        sm75: include_str!("../../../../kernels/ptx/embed_q5_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q5_0.sm80.ptx"),
    },
    Module {
        name: "embed_q5_1",
        sm75: include_str!("../../../../kernels/ptx/embed_q5_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q5_1.sm75.ptx"),
    },
    Module {
        name: "embed_q5_k",
        sm75: include_str!("../../../../kernels/ptx/embed_q5_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q5_k.sm75.ptx"),
    },
    Module {
        name: "embed_q6_k",
        sm75: include_str!("../../../../kernels/ptx/embed_q6_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q6_k.sm75.ptx"),
    },
    Module {
        name: "embed_q8_0",
        sm75: include_str!("../../../../kernels/ptx/embed_q8_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_q8_0.sm80.ptx"),
    },
    Module {
        name: "embed_tq1_0",
        sm75: include_str!("../../../../kernels/ptx/embed_tq1_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_tq1_0.sm75.ptx"),
    },
    Module {
        name: "embed_tq2_0",
        sm75: include_str!("../../../../kernels/ptx/embed_tq2_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/embed_tq2_0.sm75.ptx"),
    },
    Module {
        name: "experts_bf16",
        sm75: include_str!("../../../../kernels/ptx/experts_bf16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_bf16.sm75.ptx"),
    },
    Module {
        name: "experts_f16",
        sm75: include_str!("../../../../kernels/ptx/experts_f16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_f16.sm75.ptx"),
    },
    Module {
        name: "experts_f32",
        sm75: include_str!("../../../../kernels/ptx/experts_f32.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_f32.sm75.ptx"),
    },
    Module {
        name: "experts_iq1_m",
        sm75: include_str!("../../../../kernels/ptx/experts_iq1_m.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq1_m.sm75.ptx"),
    },
    Module {
        name: "experts_iq1_s",
        sm75: include_str!("../../../../kernels/ptx/experts_iq1_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq1_s.sm75.ptx"),
    },
    Module {
        name: "experts_iq2_s",
        sm75: include_str!("../../../../kernels/ptx/experts_iq2_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq2_s.sm75.ptx"),
    },
    Module {
        name: "experts_iq2_xs",
        sm75: include_str!("../../../../kernels/ptx/experts_iq2_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq2_xs.sm75.ptx"),
    },
    Module {
        name: "experts_iq2_xxs",
        sm75: include_str!("../../../../kernels/ptx/experts_iq2_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq2_xxs.sm75.ptx"),
    },
    Module {
        name: "experts_iq3_s",
        sm75: include_str!("../../../../kernels/ptx/experts_iq3_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq3_s.sm75.ptx"),
    },
    Module {
        name: "experts_iq3_xxs",
        sm75: include_str!("../../../../kernels/ptx/experts_iq3_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq3_xxs.sm75.ptx"),
    },
    Module {
        name: "experts_iq4_nl",
        sm75: include_str!("../../../../kernels/ptx/experts_iq4_nl.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq4_nl.sm75.ptx"),
    },
    Module {
        name: "experts_iq4_xs",
        sm75: include_str!("../../../../kernels/ptx/experts_iq4_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_iq4_xs.sm75.ptx"),
    },
    Module {
        name: "experts_mxfp4",
        sm75: include_str!("../../../../kernels/ptx/experts_mxfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_mxfp4.sm75.ptx"),
    },
    Module {
        name: "experts_nvfp4",
        sm75: include_str!("../../../../kernels/ptx/experts_nvfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_nvfp4.sm75.ptx"),
    },
    Module {
        name: "experts_q2_k",
        sm75: include_str!("../../../../kernels/ptx/experts_q2_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q2_k.sm75.ptx"),
    },
    Module {
        name: "experts_q3_k",
        sm75: include_str!("../../../../kernels/ptx/experts_q3_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q3_k.sm75.ptx"),
    },
    Module {
        name: "experts_q4_0",
        sm75: include_str!("../../../../kernels/ptx/experts_q4_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q4_0.sm75.ptx"),
    },
    Module {
        name: "experts_q4_1",
        sm75: include_str!("../../../../kernels/ptx/experts_q4_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q4_1.sm75.ptx"),
    },
    Module {
        name: "experts_q4_k",
        sm75: include_str!("../../../../kernels/ptx/experts_q4_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q4_k.sm75.ptx"),
    },
    Module {
        name: "experts_q5_0",
        sm75: include_str!("../../../../kernels/ptx/experts_q5_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q5_0.sm75.ptx"),
    },
    Module {
        name: "experts_q5_1",
        sm75: include_str!("../../../../kernels/ptx/experts_q5_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q5_1.sm75.ptx"),
    },
    Module {
        name: "experts_q5_k",
        sm75: include_str!("../../../../kernels/ptx/experts_q5_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q5_k.sm75.ptx"),
    },
    Module {
        name: "experts_q6_k",
        sm75: include_str!("../../../../kernels/ptx/experts_q6_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q6_k.sm75.ptx"),
    },
    Module {
        name: "experts_q8_0",
        sm75: include_str!("../../../../kernels/ptx/experts_q8_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_q8_0.sm75.ptx"),
    },
    Module {
        name: "experts_route",
        sm75: include_str!("../../../../kernels/ptx/experts_route.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_route.sm75.ptx"),
    },
    Module {
        name: "experts_tq1_0",
        sm75: include_str!("../../../../kernels/ptx/experts_tq1_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_tq1_0.sm75.ptx"),
    },
    Module {
        name: "experts_tq2_0",
        sm75: include_str!("../../../../kernels/ptx/experts_tq2_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/experts_tq2_0.sm75.ptx"),
    },
    Module {
        name: "gate",
        sm75: include_str!("../../../../kernels/ptx/gate.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gate.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_bf16",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_bf16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_bf16.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_f16",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_f16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_f16.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_f32",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_f32.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_f32.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_iq1_m",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_iq1_m.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_iq1_m.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_iq1_s",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_iq1_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_iq1_s.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_iq2_s",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_iq2_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_iq2_s.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_iq2_xs",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_iq2_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_iq2_xs.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_iq2_xxs",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_iq2_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_iq2_xxs.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_iq3_s",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_iq3_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_iq3_s.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_iq3_xxs",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_iq3_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_iq3_xxs.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_iq4_nl",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_iq4_nl.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_iq4_nl.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_iq4_xs",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_iq4_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_iq4_xs.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_mxfp4",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_mxfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_mxfp4.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_nvfp4",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_nvfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_nvfp4.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q2_k",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q2_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q2_k.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q3_k",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q3_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q3_k.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q4_0",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q4_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q4_0.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q4_1",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q4_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q4_1.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q4_k",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q4_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q4_k.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q5_0",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q5_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q5_0.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q5_1",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q5_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q5_1.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q5_k",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q5_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q5_k.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q6_k",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q6_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q6_k.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_q8_0",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_q8_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_q8_0.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_tq1_0",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_tq1_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_tq1_0.sm75.ptx"),
    },
    Module {
        name: "gated_ffn_tq2_0",
        sm75: include_str!("../../../../kernels/ptx/gated_ffn_tq2_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/gated_ffn_tq2_0.sm75.ptx"),
    },
    Module {
        name: "linear_bf16",
        sm75: include_str!("../../../../kernels/ptx/linear_bf16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_bf16.sm75.ptx"),
    },
    Module {
        name: "linear_f16",
        sm75: include_str!("../../../../kernels/ptx/linear_f16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_f16.sm75.ptx"),
    },
    Module {
        name: "linear_f32",
        sm75: include_str!("../../../../kernels/ptx/linear_f32.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_f32.sm75.ptx"),
    },
    Module {
        name: "linear_iq1_m",
        sm75: include_str!("../../../../kernels/ptx/linear_iq1_m.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_iq1_m.sm75.ptx"),
    },
    Module {
        name: "linear_iq1_s",
        sm75: include_str!("../../../../kernels/ptx/linear_iq1_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_iq1_s.sm75.ptx"),
    },
    Module {
        name: "linear_iq2_s",
        sm75: include_str!("../../../../kernels/ptx/linear_iq2_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_iq2_s.sm75.ptx"),
    },
    Module {
        name: "linear_iq2_xs",
        sm75: include_str!("../../../../kernels/ptx/linear_iq2_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_iq2_xs.sm75.ptx"),
    },
    Module {
        name: "linear_iq2_xxs",
        sm75: include_str!("../../../../kernels/ptx/linear_iq2_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_iq2_xxs.sm75.ptx"),
    },
    Module {
        name: "linear_iq3_s",
        sm75: include_str!("../../../../kernels/ptx/linear_iq3_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_iq3_s.sm75.ptx"),
    },
    Module {
        name: "linear_iq3_xxs",
        sm75: include_str!("../../../../kernels/ptx/linear_iq3_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_iq3_xxs.sm75.ptx"),
    },
    Module {
        name: "linear_iq4_nl",
        sm75: include_str!("../../../../kernels/ptx/linear_iq4_nl.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_iq4_nl.sm75.ptx"),
    },
    Module {
        name: "linear_iq4_xs",
        sm75: include_str!("../../../../kernels/ptx/linear_iq4_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_iq4_xs.sm75.ptx"),
    },
    Module {
        name: "linear_mxfp4",
        sm75: include_str!("../../../../kernels/ptx/linear_mxfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_mxfp4.sm75.ptx"),
    },
    Module {
        name: "linear_nvfp4",
        sm75: include_str!("../../../../kernels/ptx/linear_nvfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_nvfp4.sm75.ptx"),
    },
    Module {
        name: "linear_q2_k",
        sm75: include_str!("../../../../kernels/ptx/linear_q2_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q2_k.sm75.ptx"),
    },
    Module {
        name: "linear_q3_k",
        sm75: include_str!("../../../../kernels/ptx/linear_q3_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q3_k.sm75.ptx"),
    },
    Module {
        name: "linear_q4_0",
        sm75: include_str!("../../../../kernels/ptx/linear_q4_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q4_0.sm75.ptx"),
    },
    Module {
        name: "linear_q4_1",
        sm75: include_str!("../../../../kernels/ptx/linear_q4_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q4_1.sm75.ptx"),
    },
    Module {
        name: "linear_q4_k",
        sm75: include_str!("../../../../kernels/ptx/linear_q4_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q4_k.sm75.ptx"),
    },
    Module {
        name: "linear_q5_0",
        sm75: include_str!("../../../../kernels/ptx/linear_q5_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q5_0.sm75.ptx"),
    },
    Module {
        name: "linear_q5_1",
        sm75: include_str!("../../../../kernels/ptx/linear_q5_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q5_1.sm75.ptx"),
    },
    Module {
        name: "linear_q5_k",
        sm75: include_str!("../../../../kernels/ptx/linear_q5_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q5_k.sm75.ptx"),
    },
    Module {
        name: "linear_q6_k",
        sm75: include_str!("../../../../kernels/ptx/linear_q6_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q6_k.sm75.ptx"),
    },
    Module {
        name: "linear_q8_0",
        sm75: include_str!("../../../../kernels/ptx/linear_q8_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_q8_0.sm75.ptx"),
    },
    Module {
        name: "linear_tq1_0",
        sm75: include_str!("../../../../kernels/ptx/linear_tq1_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_tq1_0.sm75.ptx"),
    },
    Module {
        name: "linear_tq2_0",
        sm75: include_str!("../../../../kernels/ptx/linear_tq2_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/linear_tq2_0.sm75.ptx"),
    },
    Module {
        name: "logits",
        sm75: include_str!("../../../../kernels/ptx/logits.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/logits.sm80.ptx"),
    },
    Module {
        name: "part",
        sm75: include_str!("../../../../kernels/ptx/part.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/part.sm75.ptx"),
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
        sm80: include_str!("../../../../kernels/ptx/rope.sm75.ptx"),
    },
    Module {
        name: "scale",
        sm75: include_str!("../../../../kernels/ptx/scale.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/scale.sm80.ptx"),
    },
    Module {
        name: "tiles_bf16",
        sm75: include_str!("../../../../kernels/ptx/tiles_bf16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_bf16.sm80.ptx"),
    },
    Module {
        name: "tiles_f16",
        sm75: include_str!("../../../../kernels/ptx/tiles_f16.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_f16.sm80.ptx"),
    },
    Module {
        name: "tiles_f32",
        sm75: include_str!("../../../../kernels/ptx/tiles_f32.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_f32.sm80.ptx"),
    },
    Module {
        name: "tiles_iq1_m",
        sm75: include_str!("../../../../kernels/ptx/tiles_iq1_m.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_iq1_m.sm80.ptx"),
    },
    Module {
        name: "tiles_iq1_s",
        sm75: include_str!("../../../../kernels/ptx/tiles_iq1_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_iq1_s.sm80.ptx"),
    },
    Module {
        name: "tiles_iq2_s",
        sm75: include_str!("../../../../kernels/ptx/tiles_iq2_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_iq2_s.sm80.ptx"),
    },
    Module {
        name: "tiles_iq2_xs",
        sm75: include_str!("../../../../kernels/ptx/tiles_iq2_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_iq2_xs.sm80.ptx"),
    },
    Module {
        name: "tiles_iq2_xxs",
        sm75: include_str!("../../../../kernels/ptx/tiles_iq2_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_iq2_xxs.sm80.ptx"),
    },
    Module {
        name: "tiles_iq3_s",
        sm75: include_str!("../../../../kernels/ptx/tiles_iq3_s.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_iq3_s.sm80.ptx"),
    },
    Module {
        name: "tiles_iq3_xxs",
        sm75: include_str!("../../../../kernels/ptx/tiles_iq3_xxs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_iq3_xxs.sm80.ptx"),
    },
    Module {
        name: "tiles_iq4_nl",
        sm75: include_str!("../../../../kernels/ptx/tiles_iq4_nl.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_iq4_nl.sm80.ptx"),
    },
    Module {
        name: "tiles_iq4_xs",
        sm75: include_str!("../../../../kernels/ptx/tiles_iq4_xs.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_iq4_xs.sm80.ptx"),
    },
    Module {
        name: "tiles_mxfp4",
        sm75: include_str!("../../../../kernels/ptx/tiles_mxfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_mxfp4.sm80.ptx"),
    },
    Module {
        name: "tiles_nvfp4",
        sm75: include_str!("../../../../kernels/ptx/tiles_nvfp4.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_nvfp4.sm80.ptx"),
    },
    Module {
        name: "tiles_q2_k",
        sm75: include_str!("../../../../kernels/ptx/tiles_q2_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q2_k.sm80.ptx"),
    },
    Module {
        name: "tiles_q3_k",
        sm75: include_str!("../../../../kernels/ptx/tiles_q3_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q3_k.sm80.ptx"),
    },
    Module {
        name: "tiles_q4_0",
        sm75: include_str!("../../../../kernels/ptx/tiles_q4_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q4_0.sm80.ptx"),
    },
    Module {
        name: "tiles_q4_1",
        sm75: include_str!("../../../../kernels/ptx/tiles_q4_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q4_1.sm80.ptx"),
    },
    Module {
        name: "tiles_q4_k",
        sm75: include_str!("../../../../kernels/ptx/tiles_q4_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q4_k.sm80.ptx"),
    },
    Module {
        name: "tiles_q5_0",
        sm75: include_str!("../../../../kernels/ptx/tiles_q5_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q5_0.sm80.ptx"),
    },
    Module {
        name: "tiles_q5_1",
        sm75: include_str!("../../../../kernels/ptx/tiles_q5_1.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q5_1.sm80.ptx"),
    },
    Module {
        name: "tiles_q5_k",
        sm75: include_str!("../../../../kernels/ptx/tiles_q5_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q5_k.sm80.ptx"),
    },
    Module {
        name: "tiles_q6_k",
        sm75: include_str!("../../../../kernels/ptx/tiles_q6_k.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q6_k.sm80.ptx"),
    },
    Module {
        name: "tiles_q8_0",
        sm75: include_str!("../../../../kernels/ptx/tiles_q8_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_q8_0.sm80.ptx"),
    },
    Module {
        name: "tiles_tq1_0",
        sm75: include_str!("../../../../kernels/ptx/tiles_tq1_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_tq1_0.sm80.ptx"),
    },
    Module {
        name: "tiles_tq2_0",
        sm75: include_str!("../../../../kernels/ptx/tiles_tq2_0.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/tiles_tq2_0.sm80.ptx"),
    },
    Module {
        name: "top",
        sm75: include_str!("../../../../kernels/ptx/top.sm75.ptx"),
        sm80: include_str!("../../../../kernels/ptx/top.sm75.ptx"),
    },
];
