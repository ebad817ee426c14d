//! The engine against an ordinary walk: every method on every driver, on volumes that are fresh, aged
//! and damaged; its bounds; devices that fail.

mod bounds;
mod failing;
mod modelled;
mod order;
mod same;
mod together;
mod trees;
mod volumes;
