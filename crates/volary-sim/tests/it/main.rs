//! The explorer on a toy: does it find what is wrong, and only that?

mod mistakes;
mod toy;
