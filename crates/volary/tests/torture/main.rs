//! What power cuts leave of volumes.

mod bits;
mod cedar;
mod damage;
mod fat;
mod faults;
mod ffs;
mod kills;
mod plans;
mod planted;
mod room;
mod same;
mod unread;
mod v7;
