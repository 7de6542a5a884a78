//! The suite of every backend, for both paths and every set of instructions of this machine.

use candor_backend::conformance::{Size, Subject};
use candor_backend::{Backend, KvType, Precision};
use candor_cpu::{CpuBackend, CpuConfig, Isa};
use candor_testkit::model_of;

fn backend(precision: Precision, isa: Option<Isa>) -> Box<dyn Backend> {
    // More threads than most test machines have cores, so that tiles change hands.
    Box::new(CpuBackend::new(CpuConfig {
        threads: 3,
        isa,
        prepare: precision,
    }))
}

const fn subject(backend: fn() -> Box<dyn Backend>, precision: Precision, kv: KvType) -> Subject {
    Subject {
        backend,
        file: model_of,
        precision,
        kv,
        few_rows: 0,
        size: Size::Full,
    }
}

candor_backend::conformance!(exact: subject(
    // Ready for fast sessions, so that a load has something to do that can be stopped.
    || backend(Precision::Fast, None),
    Precision::Exact,
    KvType::F32,
));

candor_backend::conformance!(fast: subject(
    || backend(Precision::Fast, None),
    Precision::Fast,
    KvType::F16,
));

candor_backend::conformance!(fast_with_float32_state: subject(
    || backend(Precision::Fast, None),
    Precision::Fast,
    KvType::F32,
));

candor_backend::conformance!(fast_with_8_bit_state: subject(
    || backend(Precision::Fast, None),
    Precision::Fast,
    KvType::Q8_0,
));

candor_backend::conformance!(portable: subject(
    || backend(Precision::Fast, Some(Isa::Portable)),
    Precision::Fast,
    KvType::F16,
));

#[cfg(target_arch = "x86_64")]
candor_backend::conformance!(avx2: subject(
    // A machine without it takes the portable kernels, with a reason.
    || backend(Precision::Fast, Some(Isa::Avx2)),
    Precision::Fast,
    KvType::F16,
));
