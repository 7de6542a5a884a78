//! A disk that becomes full while a reply is written: a small one is made of memory, which only root
//! may do.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::figures::Figure;
use super::{Bench, counted};
use crate::{command, test};

/// Room for a store, a profile of the web view and the reply, and little more.
const SIZE: &str = "size=24m";

pub(super) fn measure(bench: &Bench) -> Result<Vec<Figure>> {
    super::window::build()?;
    let disk = Disk::mount(&bench.scratch.join("small"))?;
    let run = test::shipped_window(&["disk_that_becomes_full"])?
        .with("TMPDIR", &disk.0)
        .with("CANDOR_SMALL_DISK", &disk.0);
    let kept = run.run_and_keep()?;
    let mut figure = Figure::new(
        "a disk of 24 MB filled while a reply is written: it goes on, it is said, all is there again",
    );
    counted::note(&mut figure, &kept);
    Ok(vec![figure])
}

/// A small disk. Gone when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        command::program("mount", &["-t", "tmpfs", "-o", SIZE, "candor-soak"])
            .argument(folder)
            .run()
            .context("a disk of memory, which only root can make")?;
        Ok(Self(folder.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // One that stays is gone with the next start of the machine.
        let _ = command::program("umount", &[]).argument(&self.0).run();
    }
}
