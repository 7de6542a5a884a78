//! From CUDA C++ to PTX, several modules at a time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use anyhow::{Result, bail};

use super::modules::{FLAGS, FLAVOURS, Module, hash};
use super::tools::Compiler;
use crate::command;

/// What the compiler made of a module: the hash of each flavour's PTX, and what it had to say.
pub(super) type Made = (BTreeMap<String, String>, String);

/// Changes with how sources become files here: what an earlier form of this program left is not taken
/// for what this one would make.
pub(super) fn form() -> String {
    let all = concat!(include_str!("compile.rs"), include_str!("nvrtc.py"));
    hash(all.as_bytes())
}

/// Compiles modules into a folder. The answers are in the order of the modules.
pub(super) fn compile(
    modules: &[&Module],
    kernels: &Path,
    into: &Path,
    compiler: &Compiler,
) -> Vec<Result<Made>> {
    in_parallel(modules, |module| one(module, kernels, into, compiler))
}

fn one(module: &Module, kernels: &Path, into: &Path, compiler: &Compiler) -> Result<Made> {
    let mut texts = Vec::new();
    let mut said = String::new();
    for (flavour, architecture) in FLAVOURS {
        let raw = into.join(format!("{}.{flavour}.raw", module.name));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/kernels/nvrtc.py");
        let mut run = command::program("python3", &[script])
            .within(kernels)
            .argument(&compiler.library)
            .argument(&module.source)
            .argument(&raw)
            .argument(format!("--gpu-architecture={architecture}"))
            .argument(format!("--include-path={}", compiler.headers.display()));
        let defines = module.defines.iter().map(String::as_str);
        for flag in FLAGS.into_iter().chain(defines) {
            run = run.argument(flag);
        }
        said.push_str(&run.quiet_output()?);
        let ptx = tidy(&fs::read_to_string(&raw)?);
        fs::remove_file(&raw)?;
        if !ptx.contains(".entry") {
            bail!("{} holds no kernel", module.source);
        }
        texts.push((flavour, ptx));
    }
    // What gained nothing for later cards is kept once: they run the earlier form.
    texts.dedup_by(|(_, later), (_, earlier)| without_target(later).eq(without_target(earlier)));
    let mut hashes = BTreeMap::new();
    for (flavour, _) in FLAVOURS {
        let path = into.join(file_name(&module.name, flavour));
        match texts.iter().find(|(of, _)| *of == flavour) {
            Some((_, ptx)) => {
                hashes.insert(flavour.to_owned(), hash(ptx.as_bytes()));
                fs::write(path, ptx)?;
            }
            None => drop(fs::remove_file(path)),
        }
    }
    Ok((hashes, said))
}

fn without_target(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.lines().filter(|line| !line.starts_with(".target "))
}

/// Whose PTX runs where this flavour is asked for: its own, or that of the earlier one.
pub(super) fn flavour_there<'a>(ptx: &BTreeMap<String, String>, flavour: &'a str) -> &'a str {
    let earliest = FLAVOURS[0].0;
    if ptx.contains_key(flavour) {
        flavour
    } else {
        earliest
    }
}

/// The file of a module's PTX.
pub(super) fn file_name(module: &str, flavour: &str) -> String {
    format!("{module}.{flavour}.ptx")
}

/// Without remarks, empty lines, and the variables of the compiler's headers that nothing uses:
/// a third of the text, which every program would carry.
fn tidy(ptx: &str) -> String {
    let is_used = |name: &str| ptx.matches(name).nth(1).is_some();
    let kept = ptx.lines().map(str::trim_end).filter(|line| {
        let text = line.trim_start();
        if text.is_empty() || text.starts_with("//") {
            return false;
        }
        let variable = text
            .strip_prefix(".global ")
            .and_then(|rest| rest.strip_suffix(';'))
            .filter(|rest| !rest.contains('='));
        let name = variable.and_then(|rest| rest.split(' ').next_back());
        name.is_none_or(|name| is_used(name.split('[').next().unwrap_or(name)))
    });
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// Does the work for each item, on every core.
pub(super) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(0..items.len());
    let done = Mutex::new(BTreeMap::new());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let i = next.lock().expect("no worker panics with it").next();
                    let Some(i) = i else { break };
                    let result = work(&items[i]);
                    done.lock()
                        .expect("no worker panics with it")
                        .insert(i, result);
                }
            });
        }
    });
    let done = done.into_inner().expect("no worker panics with it");
    done.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_kept_without_what_nothing_uses() {
        let cases = [
            ("//\n// said\n\n.version 8.0\n", ".version 8.0\n"),
            (".global .align 1 .b8 spare[4];\n", ""),
            (
                ".global .align 1 .b8 used[4];\n\tmov.u64 %rd1, used;\n",
                ".global .align 1 .b8 used[4];\n\tmov.u64 %rd1, used;\n",
            ),
            (
                "\t// begin inline asm\n\tadd.s32 %r1, %r2, %r3;  \n",
                "\tadd.s32 %r1, %r2, %r3;\n",
            ),
        ];
        for (raw, expected) in cases {
            assert_eq!(tidy(raw), expected);
        }
    }

    #[test]
    fn results_keep_the_order_of_their_items() {
        let items: Vec<usize> = (0..50).collect();
        assert_eq!(
            in_parallel(&items, |i| i * 2),
            (0..100).step_by(2).collect::<Vec<_>>()
        );
    }
}
