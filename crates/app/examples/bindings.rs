//! Prints the TypeScript twin of the wire types: the content of `ui/src/platform/bindings.ts`.
#![expect(clippy::print_stdout, reason = "the text is the program's output")]

fn main() {
    print!("{}", candor_app::bindings::typescript());
}
