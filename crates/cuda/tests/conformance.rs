//! The suite of every backend, over the simulated card.

mod common;

use candor_backend::conformance::{Size, Subject};
use candor_backend::{KvType, Precision};
use candor_testkit::model_of;

/// Rows that the decode kernels take.
const FEW_ROWS: usize = 8;

const SUBJECT: Subject = Subject {
    backend: common::backend,
    file: model_of,
    precision: Precision::Fast,
    kv: KvType::F16,
    few_rows: FEW_ROWS,
    size: Size::Simulated,
};

candor_backend::conformance!(card: SUBJECT);
candor_backend::conformance!(types by type: SUBJECT);
