//! Asks the driver of this machine and prints the answer: what the programs run as their child,
//! to be tried by hand.
#![expect(clippy::print_stdout, reason = "the answer is the program's output")]

fn main() {
    println!("{}", candor_cuda::probe_child());
}
