//! Tests of V7 and System V volumes: made and written by volary, read and written by Linux, damaged and mended.

mod conformance;
mod differential;
mod make;
mod mend;
mod oracle;
mod volumes;
