//! What is going on and how long it took, one line a step.

use std::time::Instant;

use anyhow::Result;

/// Announces a step, runs it, and says how long it took.
pub fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("  … {what}");
    let begun = Instant::now();
    let result = work();
    let mark = if result.is_ok() { '✓' } else { '✗' };
    eprintln!("  {mark} {what} ({:.1} s)", begun.elapsed().as_secs_f32());
    result
}

/// Asks again every 200 ms until there is an answer or the time is over; the error names what was waited for.
pub fn wait_for<T>(what: &str, seconds: u64, mut probe: impl FnMut() -> Option<T>) -> Result<T> {
    let deadline = Instant::now() + std::time::Duration::from_secs(seconds);
    loop {
        if let Some(value) = probe() {
            return Ok(value);
        }
        if Instant::now() > deadline {
            anyhow::bail!("waited {seconds} s for {what}");
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}
