//! Started where no window can be shown.

use std::process::Command;

use anyhow::{Result, ensure};
use candor_window_tests::{Home, Requirements};

#[test]
fn without_a_display_it_says_so() -> Result<()> {
    let Some(needs) = Requirements::find("a start without a display") else {
        return Ok(());
    };
    let cases = [
        (None, "there is no display here"),
        // No screen has such a number.
        (Some(":4095"), "is the display :4095 there?"),
    ];
    for (display, words) in cases {
        let home = Home::new()?;
        let mut command = Command::new(&needs.app);
        command.arg("--data-dir").arg(home.data());
        command.env_remove("WAYLAND_DISPLAY").env_remove("DISPLAY");
        if let Some(display) = display {
            command.env("DISPLAY", display);
        }
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(1),
            "{:?}: {said}",
            output.status
        );
        ensure!(said.contains(words), "{said}");
        ensure!(!said.contains("panicked"), "{said}");
    }
    Ok(())
}
