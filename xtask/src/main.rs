//! Builds, runs and tests the project.
fn main() -> anyhow::Result<()> {
    Ok(())
}
