//! Launches and occupancy.

use std::ffi::{c_int, c_uint};

use crate::driver::codes::Code;
use crate::driver::launch::Shape;
use crate::driver::{Driver, Handle, Outcome, current};
use crate::ptx::Kernel;

use super::args::{In, Out, host_bytes};
use super::entries;

/// `CU_LAUNCH_ATTRIBUTE_IGNORE`.
const IGNORE: c_int = 0;

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
    attributes: In<Attribute>,
    attribute_count: c_uint,
}

/// `CUlaunchAttribute`: a number, and a value of up to 64 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attribute {
    id: c_int,
    pad: [u8; 4],
    value: [u8; 64],
}

/// What a launch gives its kernel: one address of a value for each parameter.
fn gather(kernel: &Kernel, values: &In<usize>) -> Outcome<Vec<u8>> {
    let mut bytes = vec![0; kernel.param_bytes()];
    for (place, param) in kernel.params.iter().enumerate() {
        let value = host_bytes(values.at(place)?, param.bytes)?;
        bytes[param.offset..param.offset + param.bytes].copy_from_slice(value);
    }
    Ok(bytes)
}

fn launch(
    driver: &mut Driver,
    context: Handle,
    [function, stream]: [Handle; 2],
    shape: Shape,
    (values, extra): (In<usize>, In<usize>),
) -> Outcome<()> {
    if !extra.is_null() {
        return Err(Code::NOT_SUPPORTED);
    }
    driver.launch(context, function, stream, shape, |kernel| {
        gather(kernel, &values)
    })
}

/// `CUoccupancyB2DSize`.
type SharedForBlock = Option<unsafe extern "C" fn(c_int) -> usize>;

fn best(
    driver: &Driver,
    (grid, block): (Out<c_int>, Out<c_int>),
    function: Handle,
    (of_block, plain): (SharedForBlock, usize),
    limit: c_int,
) -> Outcome<()> {
    let shared = |threads: u32| match of_block {
        // SAFETY: the caller answers for its function, which the interface says only computes.
        Some(of_block) => unsafe { of_block(threads as c_int) },
        None => plain,
    };
    let (blocks, threads) = driver.best_block(function, shared, limit)?;
    grid.put(blocks as c_int)?;
    block.put(threads as c_int)
}

entries! {
    fn cuLaunchKernel(
        function: Handle,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint,
        stream: Handle,
        values: In<usize>,
        extra: In<usize>,
    ) = current(|driver, context| {
        let grid = [grid_x, grid_y, grid_z];
        let shape = Shape { grid, block: [block_x, block_y, block_z], shared_bytes };
        launch(driver, context, [function, stream], shape, (values, extra))
    });

    fn cuLaunchKernelEx(config: In<Config>, function: Handle, values: In<usize>, extra: In<usize>) = current(|driver, context| {
        let Config { grid, block, shared_bytes, stream, attributes, attribute_count } = config.get()?;
        for place in 0..attribute_count as usize {
            if attributes.at(place)?.id != IGNORE {
                return Err(Code::NOT_SUPPORTED);
            }
        }
        let shape = Shape { grid, block, shared_bytes };
        launch(driver, context, [function, stream], shape, (values, extra))
    });

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        out: Out<c_int>, function: Handle, threads: c_int, shared: usize,
    ) = current(|driver, _| {
        out.put(driver.blocks_at_once(function, threads, shared)? as c_int)
    });

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        out: Out<c_int>, function: Handle, threads: c_int, shared: usize, _flags: c_uint,
    ) = current(|driver, _| {
        out.put(driver.blocks_at_once(function, threads, shared)? as c_int)
    });

    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>, block: Out<c_int>, function: Handle,
        of_block: SharedForBlock, shared: usize, limit: c_int,
    ) = current(|driver, _| {
        best(driver, (grid, block), function, (of_block, shared), limit)
    });

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>, block: Out<c_int>, function: Handle,
        of_block: SharedForBlock, shared: usize, limit: c_int, _flags: c_uint,
    ) = current(|driver, _| {
        best(driver, (grid, block), function, (of_block, shared), limit)
    });

    fn cuOccupancyAvailableDynamicSMemPerBlock(
        out: Out<usize>, function: Handle, blocks: c_int, _threads: c_int,
    ) = current(|driver, _| out.put(driver.shared_for(function, blocks)?));
}
