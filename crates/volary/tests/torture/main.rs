//! What power cuts leave of volumes.

mod cedar;
mod fat;
mod ffs;
mod kills;
mod planted;
