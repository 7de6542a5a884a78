//! What the tests stand on: calls as numbers, a device in use, and a few small kernels.

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};

use cudarc::driver::sys;

/// A call of the interface, as the number that it answers.
macro_rules! code {
    ($($call:tt)*) => {{
        #[allow(unused_imports, reason = "a call may need nothing but its name")]
        use ::cudarc::driver::sys::*;
        // SAFETY: pointers that tests hand over are valid, or are what is to be refused.
        unsafe { $($call)* as i32 }
    }};
}
pub(crate) use code;

/// A call that has to succeed.
macro_rules! ok {
    ($($call:tt)*) => {
        assert_eq!(crate::rig::code!($($call)*), 0, stringify!($($call)*))
    };
}
pub(crate) use ok;

/// Adds one to each of `count` floats.
const ADD_ONE: &str = "
.visible .entry add_one(.param .u64 add_one_at, .param .u32 add_one_count)
{
    .reg .pred %p<2>;
    .reg .f32 %f<3>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [add_one_at];
    ld.param.u32 %r2, [add_one_count];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra $L__END;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    add.f32 %f2, %f1, 0f3F800000;
    st.global.f32 [%rd4], %f2;
$L__END:
    ret;
}
.visible .entry twice(.param .u64 twice_at, .param .u32 twice_count)
{
    .reg .f32 %f<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [twice_at];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd4], %f2;
    ret;
}
";

/// A module with the small kernels, as a compiler for this version and target writes it.
pub(crate) fn module_text(version: &str, target: &str) -> CString {
    let text = format!(".version {version}\n.target {target}\n.address_size 64\n{ADD_ONE}");
    CString::new(text).unwrap()
}

/// A context that is current, and a stream that waits for no other.
pub(crate) struct Rig {
    pub(crate) context: sys::CUcontext,
    pub(crate) stream: sys::CUstream,
}

/// `CU_STREAM_NON_BLOCKING`.
pub(crate) const NON_BLOCKING: u32 = 1;

impl Rig {
    pub(crate) fn new() -> Self {
        let (mut context, mut stream) = (null_mut(), null_mut());
        ok!(cuInit(0));
        ok!(cuDevicePrimaryCtxRetain(&raw mut context, 0));
        ok!(cuCtxSetCurrent(context));
        ok!(cuStreamCreate(&raw mut stream, NON_BLOCKING));
        Self { context, stream }
    }

    pub(crate) fn module(&self) -> sys::CUmodule {
        let mut module = null_mut();
        let text = module_text("8.0", "sm_75");
        ok!(cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
        module
    }

    pub(crate) fn function(&self, name: &str) -> sys::CUfunction {
        let (module, mut function) = (self.module(), null_mut());
        let name = CString::new(name).unwrap();
        ok!(cuModuleGetFunction(
            &raw mut function,
            module,
            name.as_ptr()
        ));
        function
    }

    /// Device memory with these floats.
    pub(crate) fn floats(&self, values: &[f32]) -> u64 {
        let mut address = 0;
        let bytes = size_of_val(values);
        ok!(cuMemAlloc_v2(&raw mut address, bytes));
        ok!(cuMemcpyHtoD_v2(address, values.as_ptr().cast(), bytes));
        address
    }

    /// What stands in device memory now, after all work of the stream.
    pub(crate) fn read(&self, address: u64, count: usize) -> Vec<f32> {
        ok!(cuStreamSynchronize(self.stream));
        let mut values = vec![0.0_f32; count];
        ok!(cuMemcpyDtoH_v2(
            values.as_mut_ptr().cast(),
            address,
            4 * count
        ));
        values
    }

    /// Launches one of the small kernels over so many floats.
    pub(crate) fn launch(&self, function: sys::CUfunction, address: u64, count: u32) -> i32 {
        self.launch_shape(function, [count.div_ceil(32), 32, 0], address, count)
    }

    /// Launches with so many blocks, threads, and bytes of shared memory.
    pub(crate) fn launch_shape(
        &self,
        function: sys::CUfunction,
        [blocks, threads, shared]: [u32; 3],
        mut address: u64,
        mut count: u32,
    ) -> i32 {
        let mut values: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut count).cast()];
        let (values, stream) = (values.as_mut_ptr(), self.stream);
        code!(cuLaunchKernel(
            function,
            blocks,
            1,
            1,
            threads,
            1,
            1,
            shared,
            stream,
            values,
            null_mut()
        ))
    }

    /// Page-locked memory for so many floats.
    pub(crate) fn pinned(&self, count: usize) -> *mut f32 {
        let mut at = null_mut();
        ok!(cuMemHostAlloc(&raw mut at, 4 * count, 0));
        at.cast()
    }

    /// Captures what the body does to the stream.
    pub(crate) fn begin_capture(&self) -> i32 {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        code!(cuStreamBeginCapture_v2(self.stream, mode))
    }

    pub(crate) fn end_capture(&self) -> (i32, sys::CUgraph) {
        let mut graph = null_mut();
        let code = code!(cuStreamEndCapture(self.stream, &raw mut graph));
        (code, graph)
    }

    pub(crate) fn instantiate(&self, graph: sys::CUgraph) -> sys::CUgraphExec {
        let mut exec = null_mut();
        ok!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0));
        exec
    }
}

/// What page-locked memory holds now.
pub(crate) fn peek(at: *const f32, count: usize) -> Vec<f32> {
    // SAFETY: the tests ask for no more than they have allocated.
    unsafe { std::slice::from_raw_parts(at, count) }.to_vec()
}

/// Writes page-locked memory.
pub(crate) fn poke(at: *mut f32, values: &[f32]) {
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), at, values.len()) };
}

/// The text of a code.
pub(crate) fn described(code: sys::CUresult) -> (String, String) {
    let (mut name, mut text) = (null(), null());
    ok!(cuGetErrorName(code, &raw mut name));
    ok!(cuGetErrorString(code, &raw mut text));
    // SAFETY: the call succeeded, so it is a text that stays.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    // SAFETY: as above.
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    let own = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    (own(name), own(text))
}
