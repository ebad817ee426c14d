//! Who is it: SPNEGO (MS-SPNG) around NTLM (MS-NLMP).

mod ntlm;

pub(crate) use ntlm::nt_hash;
