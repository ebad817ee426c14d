//! The papers' tables and figures, measured or computed here, with the papers'
//! figures beside them.

pub mod cedar;
pub mod chart;
pub mod daft;
pub mod dosfs;
pub mod ffs;
pub mod fifs;
mod on;
pub mod table;
