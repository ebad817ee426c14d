//! What power cuts leave of volumes.

mod fat;
mod planted;
