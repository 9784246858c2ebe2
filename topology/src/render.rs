//! A table and a picture of what was discovered.
//!
//! Pure: both return text for the caller to write.

mod layout;
mod picture;
mod table;

pub use picture::svg;
pub use table::table;

#[cfg(test)]
mod tests;
