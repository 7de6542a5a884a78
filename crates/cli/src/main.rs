//! The headless program.
fn main() -> anyhow::Result<()> {
    Ok(())
}
