//! The products of the suite on the oldest card that is served: it has the short tensor-core
//! products alone, and no copies that do not wait.

mod common;

use candor_backend::conformance::{Size, Subject, attention, experts, gated_ffn, linear, logits};
use candor_backend::{Backend, KvType, Precision};
use candor_cuda::{CudaBackend, CudaDevice};
use candor_testkit::model_of;

/// Rows that the decode kernels take.
const FEW_ROWS: usize = 8;

const SUBJECT: Subject = Subject {
    backend: turing,
    file: model_of,
    precision: Precision::Fast,
    kv: KvType::F16,
    few_rows: FEW_ROWS,
    size: Size::Simulated,
};

fn turing() -> Box<dyn Backend> {
    Box::new(CudaBackend::new(CudaDevice {
        capability: (7, 5),
        ..common::device("capability=7.5")
    }))
}

#[test]
fn products_match_the_reference() {
    linear::linear_matches_the_reference(&SUBJECT);
    for stored in ["Q4_K", "Q6_K", "IQ2_S", "F16"] {
        linear::linear_of(&SUBJECT, stored);
    }
    gated_ffn::gated_ffn_matches_the_reference(&SUBJECT);
    logits::logits_match_the_reference(&SUBJECT);
}

#[test]
fn experts_match_the_reference() {
    experts::experts_match_the_reference(&SUBJECT);
}

#[test]
fn attention_matches_the_reference() {
    attention::attention_matches_the_reference(&SUBJECT);
}
