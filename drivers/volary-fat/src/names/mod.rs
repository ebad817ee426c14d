//! Names: characters and code pages, short and long names as stored, how a mount shows and makes
//! them, and by which hashes they are found. May use `volume`, and `unix` for the paper's names.

pub(crate) mod chars;
pub(crate) mod codepage;
pub(crate) mod hash;
pub(crate) mod keys;
pub(crate) mod long;
pub(crate) mod record;
pub(crate) mod short;
pub(crate) mod style;

pub use style::{Names, Stored, Style};
